/** The peers: each started on its own, on the same data, answering the same question. */

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

export interface Peer extends Disposable {
  readonly pid: number
  readonly port: number
}

const bin = join(import.meta.dir, 'node_modules/.bin')

/** Prism as a static mock: the same page and the same server as examples of an OpenAPI document. */
export async function startPrism(folder: string, page: unknown, server: unknown): Promise<Peer> {
  const operation = (example: unknown) => ({
    get: {
      responses: {
        200: { description: 'OK', content: { 'application/json': { schema: { type: 'object' }, example } } },
      },
    },
  })
  const document = {
    openapi: '3.1.0',
    info: { title: 'postern', version: '1' },
    paths: { '/connect/small': operation(page), '/servers/reports': operation(server) },
  }
  const file = join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify(document))
  const port = await freePort()
  return start([join(bin, 'prism'), 'mock', '-p', String(port), file], port, '/servers/reports')
}

/** json-server over the same rows. */
export async function startJsonServer(folder: string, rows: readonly object[]): Promise<Peer> {
  const file = join(folder, 'db.json')
  writeFileSync(file, JSON.stringify({ connections: rows.map((row, i) => ({ id: i, ...row })) }))
  const port = await freePort()
  return start([join(bin, 'json-server'), '--quiet', '--port', String(port), file], port, '/connections?_limit=1')
}

/** mcp-proxy in front of a server on stdio, with a session open. */
export async function startMcpProxy(server: readonly string[]): Promise<Peer & { readonly session: string }> {
  const port = await freePort()
  const options = ['--port', String(port), '--host', '127.0.0.1', '--server', 'stream', '--no-eventStore']
  const peer = await start([join(bin, 'mcp-proxy'), ...options, '--', ...server], port, '/ping')
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
  })
  await response.text()
  return { ...peer, session: response.headers.get('mcp-session-id') ?? '', [Symbol.dispose]: peer[Symbol.dispose] }
}

/** nginx as a reverse proxy, in one process, that keeps its connections to the upstream; undefined where it is missing. */
export async function startNginx(folder: string, upstreamPort: number): Promise<Peer | undefined> {
  const program = Bun.which('nginx', { PATH: `${process.env['PATH']}:/usr/sbin` })
  if (program === null) return undefined
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
    daemon off; master_process off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
    events { worker_connections 256; }
    http {
      access_log off;
      ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      upstream mcp { server 127.0.0.1:${upstreamPort}; keepalive 64; }
      server {
        listen 127.0.0.1:${port};
        keepalive_requests 1000000000;
        location = /ready { return 204; }
        location / { proxy_pass http://mcp; proxy_http_version 1.1; proxy_set_header Connection ""; }
      }
    }`
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, config)
  return startProgram([program, '-c', file, '-e', `${folder}/nginx.log`], port, '/ready')
}

function start(command: readonly string[], port: number, path: string): Promise<Peer> {
  return startProgram(['node', ...command], port, path)
}

async function startProgram(command: readonly string[], port: number, path: string): Promise<Peer> {
  const child = Bun.spawn([...command], { stdout: 'ignore', stderr: 'ignore' })
  const deadline = performance.now() + 30_000
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined)
    if (answer?.ok) break
    if (child.exitCode !== null)
      throw new Error(`${command.join(' ')} ended (is test/bench installed?): ${child.exitCode}`)
    if (performance.now() > deadline) throw new Error(`${command.join(' ')} did not start`)
    await Bun.sleep(100)
  }
  return { pid: child.pid, port, [Symbol.dispose]: () => child.kill() }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
