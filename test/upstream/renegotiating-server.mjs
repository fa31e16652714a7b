/** A server for Node that renegotiates TLS when it has a request, and answers after that. Prints its port. */

import { createServer } from 'node:tls'

const { KEY: key, CERT: cert } = process.env
const server = createServer({ key, cert, maxVersion: 'TLSv1.2' }, (socket) => {
  socket.on('error', () => {})
  socket.on('data', () => {
    socket.renegotiate({ rejectUnauthorized: false }, () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}')
    })
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
