/** Waits for what comes by itself: another process, a socket, a file. */

/** Less than a test may take, so that its failure says what it waited for; far more than a busy machine needs. */
const patienceSeconds = 300

/** Asks again until it is so; throws where it never comes. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + patienceSeconds * 1000
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`${patienceSeconds} s later it is not so: ${isSo}`)
    await Bun.sleep(1)
  }
}
