/** The frame around all rooms: the bar, the navigation, and the room that the address names. */

import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useErrorBoundary, useState } from 'preact/hooks'
import { address, go, hrefOf, roomKey } from './address.ts'
import { ask, base, Refused, session, tellTabs } from './interface.ts'
import { Brand } from './parts/brand.tsx'
import { useModal } from './parts/dialog.tsx'
import { Foreign } from './parts/foreign.tsx'
import { lazy } from './parts/lazy.tsx'
import { Action, Facts } from './parts/parts.tsx'
import { Room } from './parts/room.tsx'
import { useAction } from './resource.ts'
import { Overview } from './rooms/overview.tsx'
import { SignIn } from './rooms/sign-in.tsx'

const Audit = lazy('audit', async () => (await import('./rooms/audit.tsx')).Audit)
const Call = lazy('call', async () => (await import('./rooms/calls.tsx')).Call)
const Calls = lazy('calls', async () => (await import('./rooms/calls.tsx')).Calls)
const Connect = lazy('connect', async () => (await import('./rooms/connect.tsx')).Connect)
const Connection = lazy('connection', async () => (await import('./rooms/connection.tsx')).Connection)
const Connections = lazy('connections', async () => (await import('./rooms/connections.tsx')).Connections)
const Keys = lazy('keys', async () => (await import('./rooms/keys.tsx')).Keys)
const Namespace = lazy('namespace', async () => (await import('./rooms/namespaces.tsx')).Namespace)
const Namespaces = lazy('namespaces', async () => (await import('./rooms/namespaces.tsx')).Namespaces)
const Organization = lazy('organization', async () => (await import('./rooms/organization.tsx')).Organization)
const Server = lazy('server', async () => (await import('./rooms/servers.tsx')).Server)
const Servers = lazy('servers', async () => (await import('./rooms/servers.tsx')).Servers)
const Tokens = lazy('tokens', async () => (await import('./rooms/tokens.tsx')).Tokens)
const Tool = lazy('tool', async () => (await import('./rooms/tool.tsx')).Tool)

/** The rooms of the navigation: their address, their name, and the letter that leads there after `g`. */
const rooms = [
  ['', 'Overview', 'o'],
  ['connections', 'Connections', 'c'],
  ['connect', 'Connect a client', 'i'],
  ['calls', 'Calls', 'l'],
  ['servers', 'Servers', 's'],
  ['namespaces', 'Namespaces', 'n'],
  ['tokens', 'Tokens', 't'],
  ['keys', 'API keys', 'k'],
  ['audit', 'Audit', 'a'],
] as const
/** Rooms that begin a group: what is used, what is set up, and who may do what. */
const begins = new Set(['servers', 'tokens'])

export function Shell() {
  const [isAsking, setAsking] = useState(false)
  const showKeys = () => setAsking(true)
  useKeys(showKeys)
  const leave = useAction(signOut)
  const [isMenuOpen, setMenuOpen] = useState(false)
  useEffect(() => setMenuOpen(false), [roomKey.value])
  if (session.value === undefined) return null
  if (session.value === null) return <SignIn />
  const [first = ''] = address.value.path
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <button
          type="button"
          class="menu"
          data-action="menu"
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Menu
        </button>
        <a class="brand" href={hrefOf()}>
          <Brand />
        </a>
        <Foreign as="span" class="muted" text={session.value.userId} />
        <Action name="keys" onClick={showKeys} label="Shortcuts" />
        {leave.error !== undefined && <small class="wrong">{leave.error.message}</small>}
        <Action name="sign-out" does={leave} label="Sign out" />
      </header>
      {isAsking && <KeyHelp onClose={() => setAsking(false)} />}
      <div class="frame">
        <nav aria-label="Rooms" class={isMenuOpen ? 'open' : undefined}>
          {rooms.map(([path, name]) => (
            <a
              key={path}
              href={hrefOf(path)}
              data-action={`go-${path || 'overview'}`}
              aria-current={first === path ? 'page' : undefined}
              class={begins.has(path) ? 'apart' : undefined}
            >
              {name}
            </a>
          ))}
          <a href={`${base}/docs`} class="apart">
            Documentation
          </a>
        </nav>
        <RoomOfAddress key={`${session.value.userId} ${first === 'connect' ? first : roomKey.value}`} />
      </div>
    </>
  )
}

function RoomOfAddress() {
  const { path } = address.value
  const Found = roomOf(path)
  // Strangers write what rooms show: one that cannot be painted says so.
  const [error, again] = useErrorBoundary()
  if (error !== undefined)
    return (
      <Room
        name={path[0] ?? 'overview'}
        title="This room cannot be shown"
        resource={{ error, isLoading: false, again }}
      />
    )
  return Found === undefined ? <NotFound /> : <Found />
}

const roomsOfPaths: Readonly<Record<string, ComponentType>> = {
  ...{ '': Overview, calls: Calls, 'calls/*': Call, connect: Connect, 'connect/*/*': Connect },
  ...{ connections: Connections, 'connections/*/*': Connection, 'connections/*/*/*/*': Tool },
  ...{ servers: Servers, 'servers/*': Server, 'servers/*/*': Server, 'organizations/*': Organization },
  ...{ namespaces: Namespaces, 'namespaces/*': Namespace, tokens: Tokens, keys: Keys, audit: Audit },
}

function roomOf([first = '', ...others]: readonly string[]): ComponentType | undefined {
  if (others.length === 4 && others[2] !== 'tools') return undefined
  const path = [first, ...others.map(() => '*')].join('/')
  return Object.hasOwn(roomsOfPaths, path) ? roomsOfPaths[path] : undefined
}

function NotFound() {
  return (
    <Room name="not-found" title="There is no such room">
      <p>The address leads nowhere. It may be of another version, or something that was deleted.</p>
      <p>
        <a href={hrefOf()} data-action="go-overview">
          Go to the overview
        </a>
      </p>
    </Room>
  )
}

/** Where postern does not answer, nobody has signed out. */
async function signOut(): Promise<void> {
  await ask('DELETE', '/console/session').catch((error) => {
    if (!(error instanceof Refused) || error.status !== 401) throw error
  })
  session.value = null
  tellTabs()
}

/** Whether keys lead somewhere: some readers of screens need them for themselves. */
const areKeysOn = signal(localStorage.getItem('postern keys') !== 'off')

/** `/` leads to the filter, `g` and a letter to a room, `?` lists the keys. */
function useKeys(ask: () => void): void {
  useEffect(() => {
    let before = ''
    const press = (event: KeyboardEvent) => {
      const target = event.target instanceof HTMLElement ? event.target : null
      if (event.key === 'Escape' && target?.closest('.filters')) target.blur()
      if (event.ctrlKey || event.metaKey || event.altKey || target?.closest('input, textarea, select, dialog')) return
      if (!areKeysOn.value) return
      const room = before === 'g' ? rooms.find(([, , letter]) => letter === event.key) : undefined
      before = event.key
      if (room !== undefined) go(hrefOf(room[0]))
      else if (event.key === '/') filterField()?.focus()
      else if (event.key === '?') ask()
      else return
      event.preventDefault()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
}

/** The one that searches, or else the first. */
const filterField = () =>
  document.querySelector<HTMLElement>('[data-field="q"]') ??
  document.querySelector<HTMLElement>('.filters [data-field]')

function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const dialog = useModal()
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={onClose}>
      <h2>Keys</h2>
      <Facts
        of={{
          '/': 'to the filter of the room; Escape leaves it',
          '?': 'these keys',
          ...Object.fromEntries(rooms.map(([, name, letter]) => [`g ${letter}`, name])),
        }}
      />
      <label class="check">
        <input
          type="checkbox"
          data-field="keys"
          checked={areKeysOn.value}
          onChange={() => {
            areKeysOn.value = !areKeysOn.value
            localStorage.setItem('postern keys', areKeysOn.value ? 'on' : 'off')
          }}
        />{' '}
        these keys work
      </label>
      <Action name="pause" onClick={onClose} label="Close" />
    </dialog>
  )
}
