/**
 * A client with many requests at once, each on a socket of its own. It prints how many were answered with 200, when
 * each has had the beginning of an answer. When it is killed, the system closes all sockets at the same moment.
 */

const [port, count, text] = process.argv.slice(2)
let [answered, good] = [0, 0]

await Promise.all(
  Array.from({ length: Number(count) }, async () => {
    let isFirst = true
    const socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: Number(port),
      socket: {
        data(_, bytes) {
          if (!isFirst) return
          isFirst = false
          answered += 1
          good += Number(bytes.toString('latin1', 9, 12) === '200')
          if (answered === Number(count)) console.log(good)
        },
        drain() {},
        error() {},
      },
    })
    socket.write(text ?? '')
  }),
)

export {}
