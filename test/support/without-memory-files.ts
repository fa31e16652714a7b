/**
 * Runs a program that cannot make files in memory: `bun without-memory-files.ts PROGRAM ARGUMENTS…`. A filter of the
 * system's calls (seccomp), which the program and all that it starts keep, refuses memfd_create.
 */

import { dlopen, ptr } from 'bun:ffi'

const { prctl, execv } = dlopen('libc.so.6', {
  prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
  execv: { args: ['ptr', 'ptr'], returns: 'i32' },
}).symbols

const memfdCreate = process.arch === 'arm64' ? 279 : 319
const instructions: readonly (readonly [code: number, whenTrue: number, whenFalse: number, operand: number])[] = [
  // Load the call's number; if it is this one, "function not implemented"; else let it pass.
  [0x20, 0, 0, 0],
  [0x15, 0, 1, memfdCreate],
  [0x06, 0, 0, 0x0005_0000 | 38],
  [0x06, 0, 0, 0x7fff_0000],
]
const filter = Buffer.alloc(instructions.length * 8)
for (const [index, [code, whenTrue, whenFalse, operand]] of instructions.entries()) {
  filter.writeUInt16LE(code, index * 8)
  filter.writeUInt8(whenTrue, index * 8 + 2)
  filter.writeUInt8(whenFalse, index * 8 + 3)
  filter.writeUInt32LE(operand, index * 8 + 4)
}
const program = Buffer.alloc(16)
program.writeUInt16LE(instructions.length, 0)
program.writeBigUInt64LE(BigInt(ptr(filter)), 8)

const noNewPrivileges = 38
const setSeccomp = 22
if (prctl(noNewPrivileges, 1, 0, 0, 0) !== 0 || prctl(setSeccomp, 2, ptr(program), 0, 0) !== 0)
  throw new Error('this system has no seccomp')

const texts = process.argv.slice(2).map((argument) => Buffer.from(`${argument}\0`))
const list = Buffer.alloc((texts.length + 1) * 8)
for (const [index, text] of texts.entries()) list.writeBigUInt64LE(BigInt(ptr(text)), index * 8)
execv(ptr(texts[0] as Buffer), ptr(list))
throw new Error(`${process.argv[2]} cannot be run`)
