/** Waits for what comes by itself: another process, a socket, a file. */

/** Asks again until it is so; throws when that takes longer than it may. */
export async function until(isSo: () => boolean | Promise<boolean>, seconds = 20): Promise<void> {
  const end = performance.now() + seconds * 1000
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`${seconds} s later it is not so: ${isSo}`)
    await Bun.sleep(1)
  }
}
