/** Readers of the texts that flags are given. Each throws CommandError 2, which says what a text must be. */

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { readTtl } from '../policy/ttl.ts'

/** Ours: the longest `--upstream-timeout`. Past it: refused at the start. */
const upstreamTimeoutMaxSeconds = 600

/** Makes a reader of numbers that are written so. */
export const numberFrom = (least: number, most: number, pattern: RegExp) => (text: string) => {
  const isFine = pattern.test(text) && Number(text) >= least && Number(text) <= most
  return isFine ? Number(text) : refuse(`must be a number from ${least} to ${most}`)
}

export const readPort = numberFrom(0, 65_535, /^\d{1,5}$/)
export const readRate = numberFrom(0, 10_000, /^\d+(?:\.\d+)?$/)

export function refuse(problem: string): never {
  throw new CommandError(problem, 2)
}

export function readHost(text: string): string {
  // Brackets belong to a URL; the socket wants the address alone.
  const host = text.replace(/^\[(.*)\]$/, '$1')
  return /^[A-Za-z0-9.:_-]+$/.test(host) ? host : refuse('must be an address or a name')
}

/** HOST:PORT, with brackets around an IPv6 address. */
export function readListen(text: string): { host: string; port: number } {
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/.exec(text) ?? []
  if (host === '' || Number(port) > 65_535) refuse('must be HOST:PORT, like 127.0.0.1:9464')
  return { host: readHost(host), port: Number(port) }
}

export function readBaseUrl(text: string): string {
  const url = text.replace(/\/+$/, '')
  return isPlainUrl(url) ? url : refuse('must be an http or https URL without user, query or fragment')
}

/** Browsers send the origin in this form alone. Any other, such as one with a slash, would never match. */
export function readOrigin(text: string): string {
  const isOrigin = isPlainUrl(text) && new URL(text).origin === text
  return isOrigin ? text : refuse('must be an origin like https://app.example.com')
}

/** True for an http or https URL without user, query and fragment. */
function isPlainUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return /^https?:$/.test(protocol) && username + password + search + hash === ''
}

/** Infinity for no limit. Fifteen digits, so that each number is exact. */
export function readMost(text: string): number {
  if (!/^\d{1,15}$/.test(text)) refuse('must be a whole number; 0 for no limit')
  return Number(text) || Number.POSITIVE_INFINITY
}

/** Durations are read as the `ttl` of a policy is. */
export function readTimeout(text: string): number {
  const timeout = /^\d{1,6}[smh]$/.test(text) ? readTtl(text) : { seconds: 0 }
  const seconds = 'seconds' in timeout ? timeout.seconds : 0
  if (seconds < 1 || seconds > upstreamTimeoutMaxSeconds) refuse('must be a duration from 1s to 10m, like 60s')
  return seconds * 1000
}

export function readReplica(text: string): string {
  if (/^[A-Za-z0-9._:[\]-]{1,64}$/.test(text)) return text
  return refuse('must have at most 64 of letters, digits and . _ : - [ ]')
}

/** Schemes that a browser handles itself; a redirect to one of them would run or show what a client sends. */
const unsafeSchemes = 'http https javascript data file blob about ftp ws wss view-source filesystem'.split(' ')

export function readScheme(text: string): string {
  const isScheme = /^[a-z][a-z0-9+.-]*$/.test(text) && !unsafeSchemes.includes(text)
  return isScheme ? text : refuse('must be the scheme of an application, like myapp')
}

/** The certificates of a file, each in PEM. */
export function readCertificates(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return refuse(`cannot be read: ${(error as Error).message}`)
  }
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (certificates.length === 0) refuse('has no certificate in PEM (-----BEGIN CERTIFICATE-----)')
  for (const [index, certificate] of certificates.entries()) {
    try {
      new X509Certificate(certificate)
    } catch {
      refuse(`certificate ${index + 1} of it cannot be read`)
    }
  }
  return certificates
}
