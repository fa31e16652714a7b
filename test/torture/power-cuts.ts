/**
 * Power cuts, simulated from what the store really asked of the kernel: a writer's system calls are recorded
 * (strace), and the file is put together as a disk may have it at a moment of chance, where writes since the last
 * sync may be there, gone, or half there. Every commit acknowledged by then must be readable.
 *
 * The control plays the same recording as if no sync had ever been made. It must lose something, or this trial
 * could not see a loss.
 */

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Random, random } from '../support/random.ts'
import { workplace } from '../support/workplace.ts'
import { collector, type Trial } from './trial.ts'

const commits = 120
const cutsARecording = 200
const sectorBytes = 512

export const powerCuts: Trial = {
  name: 'power-cuts',
  promise: 'No acknowledged write is lost in a power cut (the control, without syncs, must lose some)',
  times: { full: 2000, short: 10 },

  async run(times, seed) {
    const { broken, expect } = collector()
    if (Bun.which('strace') === null || Bun.spawnSync(['strace', '-f', 'true']).exitCode !== 0) {
      return { figure: 'nothing', broken, seen: {}, missing: 'strace is not there, or may not trace' }
    }
    let cuts = 0
    let dropped = 0
    let acknowledged = 0
    let controls = 0
    let lost = 0
    for (let recording = 0; cuts < times; recording += 1) {
      const chance = random(seed * 7919 + recording)
      using place = workplace()
      const steps = await record(place.folder, seed * 7919 + recording)
      for (let cut = 0; cut < cutsARecording && cuts < times; cut += 1) {
        // The file is only promised to be one once the first commit is acknowledged.
        const at =
          chance.pick(steps.flatMap(({ kind }, step) => (kind === 'acknowledged' ? [step] : []))) + chance.int(8)
        const disk = diskAt(steps.slice(0, at + 1), chance, 'synced')
        const state = await look(place.folder, disk)
        expect(
          state !== 'unreadable' && state >= disk.acknowledged,
          () => `recording ${recording}, cut at ${at}: ${state} of ${disk.acknowledged}`,
        )
        cuts += 1
        dropped += disk.dropped
        acknowledged += disk.acknowledged
      }
      for (let control = 0; control < cutsARecording / 10; control += 1) {
        const disk = diskAt(steps.slice(0, steps.length - chance.int(steps.length / 2)), chance, 'never synced')
        const state = await look(place.folder, disk)
        controls += 1
        if (state === 'unreadable' || state < disk.acknowledged) lost += 1
      }
    }
    expect(lost > 0, () => 'the control lost nothing: a loss would not be seen')
    const figure = `${cuts} cuts, ${dropped} unsynced sectors dropped, ${acknowledged} acknowledged commits checked: ${broken.length} lost; the control lost commits in ${lost} of ${controls} cuts`
    return { figure, broken, seen: { 'acknowledged commits': [acknowledged, cuts], 'sectors gone': [dropped, 1] } }
  },
}

type Step =
  | { readonly kind: 'write'; readonly at: number; readonly bytes: Buffer; readonly synced: boolean }
  | { readonly kind: 'sync' }
  | { readonly kind: 'cut'; readonly length: number }
  | { readonly kind: 'acknowledged' }

/** Runs the writer under strace and reads what it asked for. */
async function record(folder: string, seed: number): Promise<Step[]> {
  const [store, acks, trace] = ['recorded', 'acks', 'trace'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  rmSync(store, { recursive: true, force: true })
  writeFileSync(acks, '')
  const child = Bun.spawn(
    [
      ...['strace', '-f', '-qq', '-xx', '-s', '100000000', '-o', trace],
      ...['-e', 'trace=openat,pwrite64,writev,pwritev,write,lseek,fdatasync,fsync,msync,ftruncate,close'],
      ...['-P', join(store, 'data.mdb'), '-P', acks],
      ...[process.execPath, join(import.meta.dir, 'power-cuts-writer.ts'), store, acks, String(seed), String(commits)],
    ],
    { stdout: 'ignore', stderr: 'pipe' },
  )
  const stderr = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(`the writer failed: ${stderr}`)
  return readTrace(readFileSync(trace, 'latin1'))
}

/** A call counts as made where it begins; a sync where it has returned, for what was written before it began. */
function readTrace(text: string): Step[] {
  const steps: Step[] = []
  /** By descriptor: the store's file, whether each write is synced by itself, and where it stands. */
  const files = new Map<number, { isStore: boolean; synced: boolean; position: number }>()
  const opening = new Map<string, string>()
  for (const raw of text.split('\n')) {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(raw) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    const line = resumed === null ? rest : (opening.get(thread) ?? '') + resumed[1]
    if (line.endsWith('<unfinished ...>')) {
      opening.set(thread, line.slice(0, -'<unfinished ...>'.length))
      continue
    }
    const [, call = '', args = '', result = '-1'] = /^(\w+)\((.*)\) += (-?\d+)/.exec(line) ?? []
    const descriptor = Number.parseInt(args, 10)
    const file = files.get(descriptor)
    if (Number(result) < 0) continue
    if (call === 'openat') {
      const path = bytesOf(/"((?:\\x..)*)"/.exec(args)?.[1] ?? '').toString()
      const isSynced = /O_D?SYNC/.test(args)
      files.set(Number(result), { isStore: path.endsWith('data.mdb'), synced: isSynced, position: 0 })
    } else if (call === 'close') files.delete(descriptor)
    else if (file === undefined) continue
    else if (!file.isStore) {
      if (call === 'write') steps.push({ kind: 'acknowledged' })
    } else if (call === 'lseek') file.position = Number(result)
    else if (call === 'pwrite64') {
      const at = Number(args.slice(args.lastIndexOf(',') + 1))
      steps.push({ kind: 'write', at, bytes: bytesOf(/"([^"]*)"/.exec(args)?.[1] ?? ''), synced: file.synced })
    } else if (call === 'write' || call === 'writev') {
      const bytes = Buffer.concat([...args.matchAll(/"([^"]*)"/g)].map(([, part = '']) => bytesOf(part)))
      steps.push({ kind: 'write', at: file.position, bytes, synced: file.synced })
      file.position += bytes.length
    } else if (call === 'ftruncate') steps.push({ kind: 'cut', length: Number(args.split(',')[1]) })
    else if (call === 'fdatasync' || call === 'fsync') steps.push({ kind: 'sync' })
    else throw new Error(`a call that is not known here: ${call}`)
  }
  return steps
}

function bytesOf(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}

interface Disk {
  readonly bytes: Buffer
  readonly acknowledged: number
  readonly dropped: number
}

/** What a disk may hold after these steps. Without syncs it may lack any sector ever written. */
function diskAt(steps: readonly Step[], chance: Random, syncs: 'synced' | 'never synced'): Disk {
  let acknowledged = 0
  let dropped = 0
  let length = 0
  let bytes = Buffer.alloc(1 << 16)
  const put = (at: number, part: Buffer) => {
    if (at + part.length > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc((at + part.length) * 2)])
    part.copy(bytes, at)
    length = Math.max(length, at + part.length)
  }
  let loose: { at: number; bytes: Buffer }[] = []
  for (const step of steps) {
    if (step.kind === 'acknowledged') acknowledged += 1
    else if (step.kind === 'cut') length = Math.min(length, step.length)
    else if (step.kind === 'write' && step.synced && syncs === 'synced') put(step.at, step.bytes)
    else if (step.kind === 'write') loose.push(step)
    else if (syncs === 'synced') {
      for (const one of loose) put(one.at, one.bytes)
      loose = []
    }
  }
  // Each sector of what was not synced is there or not, whatever the order it was written in.
  const share = chance.pick([0, 0.1, 0.5, 0.9])
  for (const one of loose) {
    for (let at = 0; at < one.bytes.length; at += sectorBytes) {
      if (chance.chance(share)) put(one.at + at, one.bytes.subarray(at, at + sectorBytes))
      else dropped += 1
    }
  }
  return { bytes: bytes.subarray(0, length), acknowledged, dropped }
}

/** How many commits the store on this disk holds, read by a process of its own: LMDB trusts its file. */
async function look(folder: string, { bytes }: Disk): Promise<number | 'unreadable'> {
  const store = join(folder, 'cut')
  rmSync(store, { recursive: true, force: true })
  mkdirSync(store)
  writeFileSync(join(store, 'data.mdb'), bytes)
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'power-cuts-reader.ts'), store], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const [stdout, code] = await Promise.all([new Response(child.stdout).text(), child.exited])
  if (code !== 0 && process.env['KEEP'] !== undefined) cpSync(store, process.env['KEEP'], { recursive: true })
  return code === 0 ? Number(stdout) : 'unreadable'
}
