/** Pages: what each has, whoever asks for it. */

import { expect, test } from 'bun:test'
import { createFairness } from '../../src/fairness/fairness.ts'
import { Shares } from '../../src/fairness/shares.ts'
import { html } from '../../src/http/html.ts'
import { page } from '../../src/http/html-page.ts'
import { withAllowance } from '../support/allowance.ts'

test('a page is 200, is never kept or framed, runs no script, and sends its forms here alone', async () => {
  const response = page({ title: 'A & B', body: html`<p>${'<i>'}</p>` })
  expect(response.status).toBe(200)
  const { 'content-security-policy': policy, ...headers } = Object.fromEntries(response.headers)
  expect(headers).toEqual({
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
  })
  expect(policy?.split('; ')).toEqual([
    "default-src 'none'",
    expect.stringMatching(/^style-src 'sha256-[\w+/=]{44}'$/),
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
  ])
  const text = await response.text()
  expect(text).toContain('<h1>A &amp; B</h1>')
  expect(text).toContain('<p>&lt;i&gt;</p>')
  expect(text).not.toContain('<script')
})

test('a status, targets of forms and headers are those given', () => {
  const headers = { 'set-cookie': 'a=b' }
  const response = page({ title: '', body: html``, status: 429, formTargets: ['https://app.example'], headers })
  expect([response.status, response.headers.get('set-cookie')]).toEqual([429, 'a=b'])
  expect(response.headers.get('content-security-policy')).toEndWith("; form-action 'self' https://app.example")
})

test('a large page counts in the memory of its owner until it is read', async () => {
  const fairness = { ...createFairness(), memory: new Shares(4 * 600_000) }
  const make = () =>
    page({
      title: 'Large',
      body: html`${'x'.repeat(400_000)}`,
      request: withAllowance(new Request('http://a/'), {}, fairness),
    })
  const first = make()
  expect(make).toThrow('too many unread responses')
  expect(await first.text()).toContain('x'.repeat(400_000))
  expect(make().status).toBe(200)
})
