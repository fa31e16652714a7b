/** `postern verify`: prints the findings of `maintenance/verify.ts`, and repairs what can be repaired. */

import { join } from 'node:path'
import { openSecrets } from '../auth/secrets.ts'
import { isCompiled } from '../compiled.ts'
import { CommandError } from '../errors.ts'
import { problemsShownMax } from '../limits.ts'
import { openExistingDataFolder, type Place, requireDataFolder, upgradeStore } from '../maintenance/data-folder.ts'
import { type Findings, type ReplaceIndex, rebuildIndex, verifyStore } from '../maintenance/verify.ts'
import { escapeControlCharacters } from '../ops/escape-control.ts'
import { removeLeftovers as removeLeftoversOf } from '../storage/leftovers.ts'
import { checkFile } from '../storage/lmdb/file-check.ts'
import { replaceIndex, type Scan, scanStore } from '../storage/lmdb/scan.ts'
import { repairDatabase, scanDatabase } from '../storage/postgres/scan.ts'
import { auditCommand } from './audit.ts'
import { countText } from './count-text.ts'
import { commandProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

/**
 * `repair`: rebuild the index. `removeLeftovers`: delete connections without a
 * namespace.
 */
interface Flags extends Place {
  readonly repair?: boolean
  readonly removeLeftovers?: boolean
}

/**
 * Checks the store in a child process and reports how it ended: LMDB trusts its file, and damage to the file's own
 * structure crashes the process. Throws CommandError with the problems.
 */
export async function verify(flags: Flags, terminal: Terminal): Promise<void> {
  // A database checks its own structure.
  if (flags.store !== undefined && flags.store !== '') return verifyDatabase(flags, terminal)
  if (process.env[verifyChildVariable] !== undefined) return verifyHere(flags, terminal)
  const program = isCompiled ? [process.execPath] : [process.execPath, Bun.main]
  const args = ['verify', '--data', flags.data]
  if (flags.repair === true) args.push('--repair')
  if (flags.removeLeftovers === true) args.push('--remove-leftovers')
  const child = Bun.spawn([...program, ...args], {
    env: { ...process.env, [verifyChildVariable]: '1' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  // Commands exit with 0, 1 or 2. Anything else is a crash.
  if (code > 2 || child.signalCode !== null) {
    throw new CommandError(`${join(flags.data, 'store', 'data.mdb')} has a damaged structure: restore a backup`)
  }
  if (code !== 0) throw new CommandError(stderr.trimEnd(), code === 2 ? 2 : 1)
  terminal.stderr(stderr)
  terminal.stdout(stdout)
}

/** Tells the child that it is the child. */
const verifyChildVariable = 'POSTERN_VERIFY_HERE'

/**
 * The check itself, in the child. Without `--repair` and `--remove-leftovers` it only reads, so it may run beside a
 * server.
 */
async function verifyHere(flags: Flags, terminal: Terminal): Promise<void> {
  const { data } = flags
  // The store creates a lock file, which must be private.
  process.umask(0o077)
  const folder = join(data, 'store')
  requireDataFolder(data)
  try {
    checkFile(join(folder, 'data.mdb'))
  } catch (error) {
    throw new CommandError((error as Error).message, 1, { cause: error })
  }
  await upgradeStore(data, terminal.stderr)
  const { sealingKey } = openSecrets(join(data, 'instance-secret'))
  await verifyRecords(flags, terminal, sealingKey, {
    scan: (visitor) => scanStore(folder, visitor),
    replaceIndex: (entries, more) => replaceIndex(folder, entries, more),
  })
}

async function verifyDatabase(flags: Flags, terminal: Terminal): Promise<void> {
  const { database, secrets } = await openExistingDataFolder(flags, terminal.stderr)
  if (database === undefined) return
  try {
    if (flags.repair === true) {
      // What it finds beside the index is said once that is repaired: an error would undo the repair.
      const found = await repairDatabase(database, (repair) =>
        verifyRecords({ ...flags, removeLeftovers: false }, terminal, secrets.sealingKey, repair).catch(
          (error: unknown) => error,
        ),
      )
      if (found !== undefined && flags.removeLeftovers !== true) throw found
      if (flags.removeLeftovers !== true) return
    }
    await verifyRecords({ ...flags, repair: false }, terminal, secrets.sealingKey, {
      scan: (visitor) => scanDatabase(database, visitor),
      replaceIndex: async () => {},
    })
  } finally {
    await database.close()
  }
}

/** What is checked, and how its index is replaced. */
interface Checked {
  readonly scan: Scan
  readonly replaceIndex: ReplaceIndex
}

/** The check of all records, whatever store they are in. */
async function verifyRecords(
  flags: Flags,
  terminal: Terminal,
  sealingKey: Buffer,
  { scan, replaceIndex: replace }: Checked,
): Promise<void> {
  const { data, repair = false, removeLeftovers = false } = flags
  const progress = commandProgress(terminal)
  const findings = await verifyStore(scan, { sealingKey, onProgress: progress.step })
  progress.end()
  const { problems, indexProblems, leftovers, lost } = findings
  if (indexProblems.length > 0 && repair) {
    await rebuildIndex(scan, replace, findings)
    await auditCommand(data, 'index.rebuilt', { connections: findings.connections })
    terminal.stdout(`the index of ${countText(findings.connections, 'connection')} was rebuilt\n`)
  }
  const missing = [...lost.keys()].map((namespace) => `connections of ${namespace}: there is no such namespace`)
  // Without the problems that this run has repaired, or is about to remove.
  const left = [...problems, ...(removeLeftovers ? [] : missing), ...(repair ? [] : indexProblems)]
  if (left.length > 0) {
    const more = left.length > problemsShownMax ? [`and ${left.length - problemsShownMax} more`] : []
    throw new CommandError(
      [...left.slice(0, problemsShownMax).map(escapeControlCharacters), ...more, adviceFor(findings)].join('\n'),
    )
  }
  if (indexProblems.length === 0) {
    terminal.stdout(
      `${countText(findings.records, 'record')} and ${countText(findings.indexEntries, 'index entry', 'index entries')}, all correct\n`,
    )
  }
  if (removeLeftovers) await remove(flags, [...leftovers.keys(), ...lost.keys()], terminal)
  else if (leftovers.size > 0) terminal.stderr(leftoverLines(leftovers))
}

/** The remedy for the most serious kind of finding. */
function adviceFor({ problems, lost }: Findings): string {
  if (problems.length > 0) return 'restore a backup'
  if (lost.size === 0) return 'run `postern verify --repair`'
  return (
    'if a namespace was taken out of the fixtures, bring it back, or remove what is left of it with ' +
    '`postern verify --remove-leftovers`; if it was lost, restore a backup'
  )
}

/** Removes the connections of these namespaces, which do not exist, and audits each removal. */
async function remove(place: Place, namespaces: readonly string[], { stdout, stderr }: Terminal): Promise<void> {
  if (namespaces.length === 0) stdout('there are no leftovers\n')
  const { store } = await openExistingDataFolder(place, stderr)
  try {
    for (const namespace of namespaces) {
      const connections = await removeLeftoversOf(store, namespace)
      await auditCommand(place.data, 'leftovers.removed', { namespace, connections })
      stdout(`removed ${connectionsOf(namespace, connections)}\n`)
    }
  } finally {
    await store.close()
  }
}

/** A note rather than a failure: leftovers are what a fixture that was taken out leaves on purpose. */
function leftoverLines(leftovers: ReadonlyMap<string, number>): string {
  const lines = [...leftovers].map(([namespace, count]) => `${connectionsOf(namespace, count)}\n`)
  return `${lines.join('')}They are unreachable and harmless, and available again if the namespace comes back. To remove them: \`postern verify --remove-leftovers\`\n`
}

function connectionsOf(namespace: string, count: number): string {
  return `${countText(count, 'connection')} of the namespace ${escapeControlCharacters(namespace)}, which no longer exists`
}
