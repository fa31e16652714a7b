/** `postern store verify`: prints the findings of `maintenance/verify.ts`, and repairs what can be repaired. */

import { join } from 'node:path'
import { openSecrets } from '../auth/secrets.ts'
import { isCompiled } from '../compiled.ts'
import { CommandError } from '../errors.ts'
import { problemsShownMax } from '../limits.ts'
import { openExistingDataFolder, type Place, requireDataFolder } from '../maintenance/data-folder.ts'
import { rebuildIndex, verifyStore } from '../maintenance/verify.ts'
import { oneLine } from '../ops/escape-control.ts'
import { checkFile } from '../storage/lmdb/file-check.ts'
import { type Repair, replaceIndex, scanStore } from '../storage/lmdb/scan.ts'
import { repairDatabase, scanDatabase } from '../storage/postgres/scan.ts'
import { auditCommand } from './audit.ts'
import { countText } from './count-text.ts'
import { commandProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

interface Flags extends Place {
  readonly repair?: boolean
  /** It comes from a backup: what was stored so is no reason to be without it. */
  readonly isRestored?: boolean
}

/** Checks the store in a child process: LMDB trusts its file, and damage there crashes it. Throws CommandError. */
export async function verify(flags: Flags, terminal: Terminal): Promise<void> {
  // A database checks its own structure.
  if (flags.store !== undefined && flags.store !== '') return verifyDatabase(flags, terminal)
  const here = process.env[verifyChildVariable]
  if (here !== undefined) return verifyHere({ ...flags, isRestored: here === restored }, terminal)
  const program = isCompiled ? [process.execPath] : [process.execPath, Bun.main]
  const args = ['store', 'verify', '--data', flags.data]
  if (flags.repair === true) args.push('--repair')
  const child = Bun.spawn([...program, ...args], {
    env: { ...process.env, [verifyChildVariable]: flags.isRestored === true ? restored : 'stored' },
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
  if (code > 2 || child.signalCode !== null)
    throw new CommandError(`${join(flags.data, 'store', 'data.mdb')} has a damaged structure: restore a backup`)
  if (code !== 0) throw new CommandError(stderr.trimEnd(), code === 2 ? 2 : 1)
  terminal.stderr(stderr)
  terminal.stdout(stdout)
}

/** Tells the child that it is the child, and where the store comes from. */
const verifyChildVariable = 'POSTERN_VERIFY_HERE'
const restored = 'restored'

/** The check itself, in the child. Without `--repair` it only reads, so it may run beside a server. */
async function verifyHere(flags: Flags, terminal: Terminal): Promise<void> {
  const { data } = flags
  // The store creates a lock file, which must be private.
  process.umask(0o077)
  const folder = join(data, 'store')
  requireDataFolder(data)
  checkFile(join(folder, 'data.mdb'))
  const { sealingKey } = openSecrets(join(data, 'instance-secret'))
  await verifyRecords(flags, terminal, sealingKey, {
    scan: scanStore(folder),
    replaceIndex: (entries, more) => replaceIndex(folder, entries, more),
  })
}

async function verifyDatabase(flags: Flags, terminal: Terminal): Promise<void> {
  await using folder = await openExistingDataFolder(flags, terminal.stderr)
  const { database, secrets } = folder
  if (database === undefined) return
  const check = (store: Repair) => verifyRecords(flags, terminal, secrets.sealingKey, store)
  // Awaited here: the store is closed when this function ends.
  if (flags.repair !== true) return await check({ scan: scanDatabase(database), replaceIndex: async () => {} })
  // Report other problems after the repair: an error inside it would undo it.
  const found = await repairDatabase(database, (repair) => check(repair).catch((error: unknown) => error))
  if (found !== undefined) throw found
}

/** The check of all records, whatever store they are in. */
async function verifyRecords(flags: Flags, terminal: Terminal, sealingKey: Buffer, store: Repair): Promise<void> {
  const { data, repair = false, isRestored = false } = flags
  const progress = commandProgress(terminal)
  const findings = await verifyStore(store.scan, sealingKey, progress.step)
  progress.end()
  const { damaged, problems, indexProblems } = findings
  if (indexProblems.length > 0 && repair) {
    await rebuildIndex(store, findings)
    await auditCommand(data, 'index.rebuilt', { connections: findings.connections })
    terminal.stdout(`the index of ${countText(findings.connections, 'connection')} was rebuilt\n`)
  }
  const left = [...damaged, ...problems, ...(repair ? [] : indexProblems)]
  const more = left.length > problemsShownMax ? [`and ${left.length - problemsShownMax} more`] : []
  const shown = (advice: string) => [...left.slice(0, problemsShownMax).map(oneLine), ...more, advice].join('\n')
  if (isRestored && damaged.length === 0 && problems.length > 0)
    return terminal.stderr(`${shown('these records were already wrong in the backup: write them again')}\n`)
  if (left.length > 0) {
    const invalid =
      problems.length > 0 ? 'restore a backup, or write these records again' : 'run `postern store verify --repair`'
    throw new CommandError(shown(damaged.length > 0 ? 'restore a backup' : invalid))
  }
  if (indexProblems.length === 0)
    terminal.stdout(
      `${countText(findings.records, 'record')} and ${countText(findings.indexEntries, 'index entry', 'index entries')}, all correct\n`,
    )
}
