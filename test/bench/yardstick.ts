/** The yardstick: a bare server that answers the bytes of the files named, and nothing else. Prints its port. */

const bodies = process.argv.slice(2).map((file) => Bun.file(file).bytes())
const [page, server] = await Promise.all(bodies)
const headers = { 'content-type': 'application/json' }
const yardstick = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  development: false,
  fetch: (request) => new Response(request.url.endsWith('/server') ? server : page, { headers }),
})
console.log(yardstick.port)

export {}
