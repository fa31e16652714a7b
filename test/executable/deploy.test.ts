/** The files of deploy/, each tried as far as this machine can: what is not installed here is skipped, and said at the end. */

import { expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { executable, type Server, sampleFolder, startServer, type Workplace, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { startPostgres } from '../support/postgres.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

const deploy = resolve(import.meta.dir, '../../deploy')
const isRoot = process.getuid?.() === 0

/** An MCP server whose call sends a message at once, and each of two more events only when it is told to. */
function slowUpstream(): Disposable & { readonly url: string; readonly goOn: () => void } {
  const steps = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let taken = 0
  const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method } = (await request.json()) as { id?: number; method: string }
      if (id === undefined) return new Response(null, { status: 202 })
      if (method !== 'tools/call') {
        const serverInfo = { name: 'slow', version: '1' }
        return Response.json({
          jsonrpc: '2.0',
          id,
          result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo },
        })
      }
      const events = new ReadableStream({
        async start(controller) {
          const message = (data: string) => event({ method: 'notifications/message', params: { level: 'info', data } })
          controller.enqueue(message('first'))
          await steps[0]?.promise
          controller.enqueue(message('second'))
          await steps[1]?.promise
          controller.enqueue(event({ id, result: { content: [] } }))
          controller.close()
        },
      })
      return new Response(events, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const goOn = () => {
    steps[taken]?.resolve()
    taken += 1
  }
  return { url: `http://127.0.0.1:${server.port}/mcp`, goOn, [Symbol.dispose]: () => void server.stop(true) }
}

interface Proxy {
  readonly program: 'nginx' | 'caddy'
  /** Writes its settings, made from those of deploy/, and gives the arguments that run it on this socket. */
  readonly settings: (place: Workplace, socket: string, server: Server) => readonly string[]
}

/** Runs a file of deploy/ with other addresses, on a socket and without a certificate. */
function nginxSettings(
  folder: string,
  socket: string,
  file: string,
  hosts: Readonly<Record<string, string>>,
  change = (text: string) => text,
) {
  let own = change(readFileSync(join(deploy, file), 'utf8'))
    .replace('listen 443 ssl', `listen unix:${socket}`)
    .replaceAll(/^ *ssl_.*$/gm, '')
  for (const [name, host] of Object.entries(hosts)) own = own.replace(name, host)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder};`)
    .join('\n')
  const user = isRoot ? 'user root;' : ''
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid nginx.pid; error_log stderr; ${user} events {} http { access_log off; ${temporary} ${own} }`,
  )
  return ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
}

const proxies: readonly Proxy[] = [
  {
    program: 'nginx',
    settings: ({ folder }, socket, { url }) =>
      nginxSettings(folder, socket, 'nginx.conf', { '127.0.0.1:8787': new URL(url).host }),
  },
  {
    program: 'caddy',
    settings({ folder }, socket, { url }) {
      const own = readFileSync(join(deploy, 'Caddyfile'), 'utf8')
        .replace('127.0.0.1:8787', new URL(url).host)
        .replace(/^mcp\.example\.com \{/m, `http://mcp.example.com {\n\tbind unix/${socket}`)
      writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${own}`)
      return ['run', '--config', join(folder, 'Caddyfile')]
    },
  },
]

type Ask = (path: string, init?: RequestInit) => Promise<Response>

/** Starts a proxy that listens on the socket; `ask` sends a request through it. */
async function startProxy(
  { folder }: Workplace,
  socket: string,
  command: readonly string[],
): Promise<Disposable & { readonly ask: Ask }> {
  const proxy = Bun.spawn([...command], { env: { ...process.env, HOME: folder }, stdout: 'ignore', stderr: 'pipe' })
  const ask: Ask = (path, init = {}) =>
    fetch(`http://mcp.example.com${path}`, {
      ...init,
      unix: socket,
      headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
    })
  const isListening = () =>
    ask('/health').then(
      ({ status }) => status === 200,
      () => false,
    )
  await until(async () => {
    if (proxy.exitCode !== null) throw new Error(await new Response(proxy.stderr).text())
    return isListening()
  })
  return { ask, [Symbol.dispose]: () => proxy.kill() }
}

async function passesEverything(ask: Ask): Promise<void> {
  using upstream = slowUpstream()
  expect((await ask('/connect/northwind?limit=2')).status).toBe(200)
  const asked = new URLSearchParams({
    response_type: 'code',
    client_id: 'client',
    redirect_uri: `https://client.example.com/${'&'.repeat(600)}`,
    state: '&'.repeat(1000),
    code_challenge: 'A'.repeat(43),
    code_challenge_method: 'S256',
    resource: 'https://mcp.example.com/connect/northwind/any/mcp',
  })
  const longest = `/oauth/authorize?${asked}`
  expect((await ask(longest, { redirect: 'manual' })).status).toBe(303)
  const made = await ask('/connect/ada/slow', { method: 'PUT', body: JSON.stringify({ mcpUrl: upstream.url }) })
  expect(made.status).toBe(201)
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'any', arguments: {} } }
  const answer = await ask('/connect/ada/slow/mcp', { method: 'POST', body: JSON.stringify(call) })
  expect({ status: answer.status, type: answer.headers.get('content-type') }).toEqual({
    status: 200,
    type: 'text/event-stream',
  })
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
  const next = async () => new TextDecoder().decode((await reader.read()).value)
  // The upstream goes on only when an event is here: a proxy that held one back would never pass it.
  for (const expected of ['"first"', '"second"']) {
    expect(await next()).toContain(expected)
    upstream.goOn()
  }
  expect(await next()).toContain('"result"')
  const large = JSON.stringify({ ...call, params: { name: 'any', arguments: { text: 'x'.repeat(900_000) } } })
  const taken = await ask('/connect/ada/slow/mcp', { method: 'POST', body: large })
  expect(taken.status).toBe(200)
  await taken.body?.cancel()
}

const serving = ['--fixtures', sampleFolder, '--allow-upstream', '127.0.0.1', '--base-url', 'https://mcp.example.com']

for (const { program, settings } of proxies) {
  test.if(isHere(program))(
    `${program} passes requests on, and events as soon as they are there (needs ${program})`,
    async () => {
      using place = workplace()
      await using server = await startServer(place, serving)
      const socket = join(place.folder, 'socket')
      using proxy = await startProxy(place, socket, [program, ...settings(place, socket, server)])
      await passesEverything(proxy.ask)
      // After CONNECT a connection to postern answers nobody else: a proxy that passed it on would give it to somebody.
      for (const start of ['CONNECT mcp.example.com:443', 'FOO /health', 'TRACE /health'])
        expect(await statusOf(socket, start)).toMatch(/^40|^501/)
      expect(await statusOf(socket, 'CONNECT 127.0.0.1:80')).not.toBe('404')
      const others = await Promise.all(Array.from({ length: 6 }, () => proxy.ask('/health')))
      expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
    },
  )
}

/** `fetch` sends no such method. */
function statusOf(unix: string, start = 'FOO /health'): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  void Bun.connect({
    unix,
    socket: {
      open: (socket) => void socket.write(`${start} HTTP/1.1\r\nHost: mcp.example.com\r\n\r\n`),
      data(socket, bytes) {
        resolve(bytes.toString('latin1').split(' ')[1])
        socket.end()
      },
      close: () => resolve(undefined),
    },
  })
  return promise
}

/** How many connections to a server hold bytes that it has not read: proc(5), and tcp's queues in hexadecimal. */
function unreadAt({ url }: Server): number {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0')
  const lines = readFileSync('/proc/net/tcp', 'latin1').split('\n')
  const queues = new RegExp(`^ *\\d+: \\w+:${port} \\w+:\\w+ 01 \\w+:(\\w+) `)
  return lines.filter((line) => Number.parseInt(queues.exec(line)?.[1] ?? '0', 16) > 0).length
}

test.each(['nginx.conf', 'nginx.replicas.conf'])('%s lets every endpoint that calls servers take its time', (file) => {
  const [, pattern = ''] = /location ~ (\S+) \{/.exec(readFileSync(join(deploy, file), 'utf8')) ?? []
  const isPatient = (path: string) => new RegExp(pattern).test(path)
  for (const path of ['/connect/a/b/mcp', '/connect/a/mcp', '/connect/a/mcp/view', '/connect/a/b/.tools/get'])
    expect({ path, isPatient: isPatient(path) }).toEqual({ path, isPatient: true })
  for (const path of ['/connect/a/b', '/connect/a/.health', '/oauth/token']) expect(isPatient(path)).toBe(false)
})

test.if(isHere('nginx') && isHere('PostgreSQL'))(
  'nginx asks three replicas in turn, leaves out one that died, and repeats no POST (needs nginx and PostgreSQL)',
  async () => {
    using place = workplace()
    await using running = new AsyncDisposableStack()
    const cluster = await startPostgres()
    running.defer(() => cluster.stop())
    const url = await cluster.newDatabase()
    const replicas: Server[] = []
    for (const name of ['mcp1', 'mcp2', 'mcp3']) {
      const folder = join(place.folder, name)
      mkdirSync(folder, { mode: 0o700 })
      if (name !== 'mcp1') copyFileSync(join(place.folder, 'mcp1/instance-secret'), join(folder, 'instance-secret'))
      const more = ['--data', folder, '--store', url, '--replica', name]
      replicas.push(running.use(await startServer(place, [...serving, ...more])))
    }
    const hosts = replicas.map((replica, index) => [`mcp${index + 1}.internal:8787`, new URL(replica.url).host])
    const socket = join(place.folder, 'socket')
    const settings = nginxSettings(place.folder, socket, 'nginx.replicas.conf', Object.fromEntries(hosts))
    using proxy = await startProxy(place, socket, ['nginx', ...settings])
    await passesEverything(proxy.ask)
    expect(await statusOf(socket)).toBe('501')

    /** Statuses of requests that are sent together, and how many replicas have answered. */
    const several = async (count: number, path: string, init?: RequestInit) => {
      const answers = await Promise.all(Array.from({ length: count }, () => proxy.ask(path, init)))
      // The first part of a request's id is the process's own.
      const processes = new Set(answers.map(({ headers }) => headers.get('x-request-id')?.split('-')[0]))
      return { statuses: answers.map(({ status }) => status).sort(), replicas: processes.size }
    }
    const list = '/connect/northwind?limit=2'
    const mint = ['/tokens', { method: 'POST', body: '{}' }] as const
    expect(await several(6, list)).toEqual({ statuses: [200, 200, 200, 200, 200, 200], replicas: 3 })

    // Were such requests to reach the replicas, which close them without an answer, nobody else would notice.
    const open = join(place.folder, 'open')
    mkdirSync(open)
    const unguarded = nginxSettings(
      open,
      join(open, 'socket'),
      'nginx.replicas.conf',
      Object.fromEntries(hosts),
      (text) => text.replace(/if \(\$request_method[^}]*\}/, ''),
    )
    using careless = await startProxy({ ...place, folder: open }, join(open, 'socket'), ['nginx', ...unguarded])
    expect(await statusOf(join(open, 'socket'))).toBe('502')
    const others = await Promise.all(Array.from({ length: 6 }, () => careless.ask(list)))
    expect(others.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])

    // It takes requests and dies before it answers: nginx cannot know what it did.
    const [, second] = replicas as [Server, Server, Server]
    process.kill(second.pid, 'SIGSTOP')
    const reads = several(3, list)
    const writes = several(3, ...mint)
    // One of each has come as far as its socket.
    await until(() => unreadAt(second) === 2)
    await second.kill('SIGKILL')
    expect((await reads).statuses).toEqual([200, 200, 200])
    expect((await writes).statuses).toEqual([200, 200, 502])

    expect(await several(6, list)).toEqual({ statuses: [200, 200, 200, 200, 200, 200], replicas: 2 })
    expect((await several(6, ...mint)).statuses).toEqual([200, 200, 200, 200, 200, 200])
  },
)

test.if(isHere('systemd-analyze'))(
  'systemd finds nothing wrong with the unit, and little exposed (needs systemd-analyze)',
  () => {
    using place = workplace()
    const unit = join(place.folder, 'postern.service')
    writeFileSync(
      unit,
      readFileSync(join(deploy, 'postern.service'), 'utf8').replace('/usr/local/bin/postern', executable),
    )
    const verified = Bun.spawnSync(['systemd-analyze', 'verify', unit])
    expect({ code: verified.exitCode, stderr: verified.stderr.toString() }).toEqual({ code: 0, stderr: '' })
    const security = Bun.spawnSync([
      'systemd-analyze',
      'security',
      '--offline=yes',
      '--threshold=20',
      '--no-pager',
      unit,
    ])
    expect(security.exitCode).toBe(0)
  },
)

test.if(isHere('systemd-analyze'))(
  'systemd reads the drop-in for replicas, and finds nothing wrong with it (needs systemd-analyze)',
  () => {
    using place = workplace()
    const unit = join(place.folder, 'postern.service')
    const service = readFileSync(join(deploy, 'postern.service'), 'utf8')
    writeFileSync(unit, service.replace('/usr/local/bin/postern', executable))
    const dropIn = join(place.folder, 'postern.service.d/replica.conf')
    mkdirSync(join(place.folder, 'postern.service.d'))
    const verify = (text: string) => {
      writeFileSync(dropIn, text)
      const { exitCode, stderr } = Bun.spawnSync(['systemd-analyze', 'verify', unit])
      return { exitCode, stderr: stderr.toString() }
    }
    const text = readFileSync(join(deploy, 'postern.replica.conf'), 'utf8')
    expect(verify(text)).toEqual({ exitCode: 0, stderr: '' })
    // It would say so.
    expect(verify(`${text}No=thing\n`).stderr).toContain('replica.conf')
  },
)

test.if(isHere('root that may isolate'))(
  'the image is all that it needs: read-only, a user without rights, /proc and a volume (needs root that may isolate)',
  () => {
    using place = workplace()
    const root = join(place.folder, 'root')
    // As of somebody whose files are nobody else's.
    const making = `umask 077; exec ${join(deploy, 'image-root.sh')} ${executable} ${root}`
    const made = Bun.spawnSync(['sh', '-c', making])
    expect({ code: made.exitCode, stderr: made.stderr.toString() }).toEqual({ code: 0, stderr: '' })
    // The engine brings these.
    for (const name of ['proc', 'dev', 'data']) mkdirSync(join(root, name))
    const dockerfile = readFileSync(join(deploy, 'Dockerfile'), 'utf8')
    const [, environment = ''] = /^ENV (.*)$/m.exec(dockerfile) ?? []
    const [, user = ''] = /^USER (.*)$/m.exec(dockerfile) ?? []
    const script = `
    mount --bind root root
    mount -t proc proc root/proc
    mount --bind /dev root/dev
    mount -t tmpfs -o mode=755,uid=\${1%:*},gid=\${1#*:} tmpfs root/data
    mount -o remount,bind,ro root
    image() { env -i ${environment} "$(command -v chroot)" --userspec=$1 root /usr/local/bin/postern "\${@:2}"; }
    ! touch root/anything 2>/dev/null
    mkfifo told
    image $1 serve --port 0 >told &
    while read -r _ _ said url; do [ "$said" = on ] && break; done <told
    curl -sf "\${url/0.0.0.0/127.0.0.1}/health"
    image $1 health --port "\${url##*:}"
    image $1 keys create --user ada
    image $1 verify`
    const ran = Bun.spawnSync(['unshare', '-mp', '-f', 'bash', '-ec', script, 'bash', user], { cwd: place.folder })
    expect({ code: ran.exitCode, stderr: ran.stderr.toString() }).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^(?:\{.*\}\n)*key_\S+ belongs to ada\. The key is not shown again\.\n$/),
    })
    expect(ran.stdout.toString()).toMatch(
      /^\{"status":"ok".*\}http\S+ answers\npst_\S+\n\d+ records and 2 index entries, all correct/,
    )
  },
)
