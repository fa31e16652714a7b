/** The URL of a database: what it means, and what is refused. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { readAddress as read } from '../../../src/storage/postgres/store-url.ts'

test('hosts, user, password and database', () => {
  expect(read('postgres://ada:p%40ss@db1:6000,db2,[::1]:7000/platform?sslmode=require')).toEqual({
    hosts: [
      { host: 'db1', port: 6000 },
      { host: 'db2', port: 5432 },
      { host: '::1', port: 7000 },
    ],
    user: 'ada',
    password: 'p@ss',
    database: 'platform',
    tls: { mode: 'require' },
    hasNamedStatements: true,
  })
})

test('certificates are verified unless all hosts are this machine', () => {
  const tls = (url: string) => {
    const address = read(url)
    return typeof address === 'string' ? address : address.tls
  }
  expect(tls('postgres://a@db/b')).toEqual({ mode: 'verify-full' })
  expect(tls('postgres://a@localhost,db/b')).toEqual({ mode: 'verify-full' })
  expect(tls('postgresql://a@localhost,127.0.0.2,[::1]/b')).toEqual({ mode: 'disable' })
  expect(tls('postgres://a@localhost/b?sslmode=verify-full')).toEqual({ mode: 'verify-full' })
  const file = import.meta.path
  const authorities = readFileSync(file, 'utf8')
  expect(tls(`postgres://a@db/b?sslrootcert=${file}`)).toEqual({ mode: 'verify-full', authorities })
  expect(read('postgres://a@db/b?sslrootcert=/no/such/file')).toStartWith('its sslrootcert cannot be read')
})

test.each([
  ['mysql://a@db/b', 'must be like postgres://user@host:5432/database'],
  ['postgres://a@db', 'must be like postgres://user@host:5432/database'],
  ['postgres://a@db/b/c', 'must be like postgres://user@host:5432/database'],
  ['postgres://a@db/b#c', 'must be like postgres://user@host:5432/database'],
  ['postgres://db/b', 'names no user: postgres://user@…'],
  ['postgres://a@db:0/b', 'its hosts must be like db1.example.com:5432,db2.example.com'],
  ['postgres://a@db:65536/b', 'its hosts must be like db1.example.com:5432,db2.example.com'],
  ['postgres://a@db,/b', 'its hosts must be like db1.example.com:5432,db2.example.com'],
  ['postgres://a@db/b?sslmode=prefer', 'its sslmode must be disable, require, verify-full'],
  ['postgres://a@db/b?sslmode=disable', 'sends passwords and records in the clear: sslmode=disable is for loopback'],
  ['postgres://a@db/b?sslmode=require&sslrootcert=/ca', 'has an sslrootcert, which only verify-full reads'],
  ['postgres://a@db/b?ssl_mode=require', 'has an unknown parameter ssl_mode; did you mean "sslmode"?'],
  ['postgres://a@db/b?prepare=no', 'its prepare must be true or false'],
  ['postgres://a:%zz@db/b', 'has a % that begins no escape: write %25 for it'],
])('%s is refused', (url, problem) => {
  expect(read(url)).toBe(problem)
})

test('behind a pooler of transactions, statements have no names', () => {
  expect(read('postgres://a@localhost/b?prepare=false')).toMatchObject({ hasNamedStatements: false })
})

test('no complaint has the password', () => {
  for (const url of [
    'postgres://a:hush@db:0/b',
    'postgres://a:hush@db/b?x=1',
    'postgres://a:hush%@db/b?sslmode=require',
  ]) {
    expect(read(url)).toBeString()
    expect(read(url)).not.toContain('hush')
  }
})
