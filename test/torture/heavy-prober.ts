/**
 * Asks two servers every few milliseconds, one beside the other: the one that is put to the test, and one that does
 * nothing else; for `/health`, or for the path given, with the credential given. Prints the longest wait of each, in
 * milliseconds, for each line that it is sent.
 */

export {}

const [first, second, path = '/health', credential = ''] = process.argv.slice(2)
const ports = [Number(first), Number(second)]
const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n\r\n`
const everyMs = 10
let worst = ports.map(() => 0)
const sent = ports.map(() => 0)

const sockets = await Promise.all(
  ports.map((port, index) =>
    Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        data() {
          worst[index] = Math.max(worst[index] ?? 0, performance.now() - (sent[index] ?? 0))
          sent[index] = 0
        },
      },
    }),
  ),
)

setInterval(() => {
  for (const [index, socket] of sockets.entries()) {
    if (sent[index] !== 0) continue
    sent[index] = performance.now()
    socket.write(request)
  }
}, everyMs)

for await (const _ of console) {
  const now = performance.now()
  // What waits still has waited so long at least.
  console.log(JSON.stringify(worst.map((most, index) => Math.max(most, sent[index] ? now - sent[index] : 0))))
  worst = ports.map(() => 0)
}
