/** The console's form for a tool, in a real browser: each feature of a schema that it covers (contract, 23). */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, openPage, room, signInAt } from '../support/browser.ts'
import { type Server, startServer, type Workplace, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { until } from '../support/until.ts'

const key = 'a-key-of-at-least-32-characters-0'

const text = { type: 'string' }
const node = {
  type: 'object',
  properties: { label: text, next: { $ref: '#/$defs/node' }, all: { type: 'array', items: { $ref: '#/$defs/node' } } },
}
const schemas: Record<string, object> = {
  nothing: { type: 'object' },
  plain: {
    type: 'object',
    required: ['city'],
    properties: {
      city: { ...text, minLength: 2, description: 'Where', examples: ['Oslo'] },
      days: { type: 'integer', minimum: 1, maximum: 10, default: 3 },
      share: { type: 'number', multipleOf: 0.1 },
      unit: { enum: ['c', 'f', 0] },
      exact: { type: 'boolean' },
      secret: { ...text, format: 'password' },
      id: { type: 'integer' },
      made: { ...text, readOnly: true },
    },
  },
  unseen: {
    type: 'object',
    properties: { path: { ...text, default: 'a\u202eb' }, secret: { ...text, format: 'password' } },
  },
  nested: {
    type: 'object',
    required: ['address'],
    properties: {
      address: { type: 'object', required: ['street'], properties: { street: text, 'a/b': text } },
      other: { type: 'object', required: ['street'], properties: { street: text } },
    },
  },
  lists: {
    type: 'object',
    required: ['kept'],
    properties: {
      kept: { type: 'array', items: text },
      tags: { type: 'array', items: text },
      pair: { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'boolean' }], items: false },
      people: { type: 'array', items: { type: 'object', required: ['name'], properties: { name: text } } },
    },
  },
  choices: {
    type: 'object',
    properties: {
      how: { anyOf: [text, { type: 'object', properties: { x: { type: 'number' } } }] },
      limit: { type: ['integer', 'null'] },
      mixed: { type: ['string', 'boolean'] },
      old: { ...text, nullable: true },
      any: {},
    },
  },
  root: {
    type: 'object',
    properties: { shared: text },
    oneOf: [
      { title: 'By id', properties: { id: { type: 'integer' } }, required: ['id'] },
      { title: 'By name', properties: { name: text }, required: ['name'] },
    ],
  },
  required: {
    type: 'object',
    properties: { a: text, b: text },
    anyOf: [{ required: ['a'] }, { required: ['b'] }],
  },
  optional: {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] }, label: text, same: { allOf: [{ $ref: '#' }] } },
  },
  recursive: { type: 'object', properties: { tree: { $ref: '#/$defs/node' } }, $defs: { node } },
  names: { type: 'object', properties: { known: text }, additionalProperties: { type: 'number' } },
  kinds: {
    type: 'object',
    required: ['v'],
    properties: {
      v: {
        oneOf: [
          { type: 'object', properties: { a: text } },
          { type: 'object', properties: { b: text } },
        ],
      },
      list: { type: 'array', items: { type: 'number' } },
      words: { type: 'array', items: text },
      patterned: { type: 'object', properties: { x: text }, patternProperties: { '^x-': text } },
      mixed: { type: ['string', 'number'], default: 'auto' },
      free: { anyOf: [{ title: 'Anything' }, { type: 'object', properties: { k: text } }] },
    },
  },
  joined: {
    type: 'object',
    allOf: [{ properties: { a: text }, required: ['a'] }, { properties: { b: { type: 'number' } } }],
  },
  any: { type: 'object', properties: { value: {} } },
}

let browser: Browser
let place: Workplace
let server: Server
let opened: Awaited<ReturnType<typeof openPage>>
beforeAll(async () => {
  if (!isHere('Chromium')) return
  browser = await openBrowser()
  place = workplace()
  mkdirSync(join(place.folder, 'fixtures'))
  const tools = Object.entries(schemas).map(([name, inputSchema]) => ({ name, inputSchema }))
  const fixtures = {
    namespaces: [{ namespace: 'acme', userId: 'u' }],
    apiKeys: [{ userId: 'u', key }],
    servers: [
      {
        ...{ qualifiedName: 'acme/forms', displayName: 'Forms', description: 'Tools of every shape', remote: true },
        ...{ connections: [], tools },
      },
    ],
    connections: [
      {
        ...{ namespace: 'acme', connectionId: 'forms', mcpUrl: 'https://forms.example/mcp', server: 'acme/forms' },
        mock: { enabled: true },
      },
    ],
  }
  writeFileSync(join(place.folder, 'fixtures/forms.json'), JSON.stringify(fixtures))
  server = await startServer(place, ['--fixtures', join(place.folder, 'fixtures')])
  opened = await openPage(browser, server.url)
  await signInAt(opened.page, `${server.url}/console`, key)
})
afterAll(async () => {
  await browser?.close()
  await server?.kill('SIGKILL')
  place?.[Symbol.dispose]()
})

const field = (at: string) => `[data-field="${at}"]`
const action = (name: string, at: string) => `[data-action="${name}"][data-for="${at}"]`

/** The arguments that the room would send. */
async function args(page: Page): Promise<unknown> {
  const message = await page.locator('[data-part="mcp"]').textContent()
  return JSON.parse(message ?? '').params.arguments
}

describe.skipIf(!isHere('Chromium'))('the form of a tool', () => {
  const inForm = (tool: string, work: (page: Page) => Promise<void>) => async () => {
    const { page, faults } = opened
    await page.goto(`${server.url}/console/connections/acme/forms/tools/${tool}`)
    await room(page, 'tool', 'ready')
    await work(page)
    expect(faults.splice(0)).toEqual([])
  }

  test(
    'an object without fields is a form without fields, and a call with {} (needs Chromium)',
    inForm('nothing', async (page) => {
      expect(await page.locator('[data-field]').count()).toBe(0)
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-part="result"][data-outcome="ok"]')
      expect(await args(page)).toEqual({})
    }),
  )

  test(
    'a value with characters that nobody sees says so beside its field, unless it is secret (needs Chromium)',
    inForm('unseen', async (page) => {
      await page.fill(field('/secret'), 'c\u202ed')
      const words = async (at: string) => page.locator(`.field:has([data-field="${at}"])`).textContent()
      expect(await words('/path')).toContain('nobody sees: aU+202Eb')
      expect(await words('/secret')).not.toContain('U+202E')
    }),
  )

  test(
    'defaults are filled in and can be taken out; a wrong field gets the focus, and nothing is called (needs Chromium)',
    inForm('plain', async (page) => {
      expect(await args(page)).toEqual({ days: 3 })
      expect(await page.getAttribute(field('/city'), 'placeholder')).toBe('Oslo')
      expect(await page.locator(field('/made')).count()).toBe(0)
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/city"]:focus')
      expect(await page.getAttribute(field('/city'), 'aria-invalid')).toBe('true')
      expect(await page.locator('[data-part="result"]').count()).toBe(0)
      await page.fill(field('/city'), 'Bergen')
      await page.fill(field('/days'), '1.5')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/days"]:focus')
      await page.fill(field('/days'), '')
      const wrongShare = () => page.getAttribute(field('/share'), 'data-wrong')
      await page.fill(field('/share'), '0.25')
      expect(await wrongShare()).toBe('must be a multiple of 0.1')
      // 0.3 / 0.1 is 2.9999999999999996.
      await page.fill(field('/share'), '0.3')
      expect(await wrongShare()).toBe(null)
      await page.fill(field('/share'), '')
      await page.selectOption(field('/unit'), '0')
      await page.selectOption(field('/exact'), 'false')
      await page.fill(field('/secret'), 'hush')
      await page.fill(field('/id'), '9007199254740993')
      expect(await page.locator('[data-part="mcp"]').textContent()).not.toContain('hush')
      expect(await page.evaluate<string>('JSON.stringify(Object.values(sessionStorage))')).not.toContain('hush')
      // JSON of the whole and back: nothing is lost, and numbers keep their digits.
      await page.click('[data-action="raw"]')
      expect(JSON.stringify(await page.inputValue(field('raw')))).toContain('9007199254740993')
      await page.click('[data-action="raw"]')
      expect(await page.inputValue(field('/id'))).toBe('9007199254740993')
      expect(await page.inputValue(field('/secret'))).toBe('hush')
      const sent = page.waitForRequest((request) => request.method() === 'POST')
      await page.press(field('/city'), 'Enter')
      expect((await sent).postData()).toBe(
        '{"city":"Bergen","unit":0,"exact":false,"secret":"hush","id":9007199254740993}',
      )
      // Readers understand such a number differently, so that the platform refuses it: the words stand beside its field.
      await page.waitForSelector('[data-part="error"]')
      await page.waitForSelector('[data-field="/id"]:focus')
      expect(await page.locator('.field:has([data-field="/id"])').textContent()).toContain('write it as a string')
      // What was typed is there again, but for the secret.
      await page.reload()
      await room(page, 'tool', 'ready')
      expect(await page.inputValue(field('/city'))).toBe('Bergen')
      expect(await page.inputValue(field('/secret'))).toBe('')
    }),
  )

  test(
    'objects in objects: a required one is there, an optional one is left out until it has a member (needs Chromium)',
    inForm('nested', async (page) => {
      expect(await args(page)).toEqual({ address: {} })
      await page.fill(field('/address/street'), 'Main')
      await page.fill(field('/address/a~1b'), 'x')
      await page.fill(field('/other/street'), 'Side')
      expect(await args(page)).toEqual({ address: { street: 'Main', 'a/b': 'x' }, other: { street: 'Side' } })
      await page.fill(field('/other/street'), '')
      expect(await args(page)).toEqual({ address: { street: 'Main', 'a/b': 'x' } })
    }),
  )

  test(
    'items are added, moved and removed; the first may have schemas of their own (needs Chromium)',
    inForm('lists', async (page) => {
      // A list that must be there is there, and another leaves with its last item.
      for (const at of ['/kept', '/tags']) {
        await page.click(action('add', at))
        await page.fill(field(`${at}/0`), 'x')
      }
      expect(await args(page)).toEqual({ kept: ['x'], tags: ['x'] })
      for (const at of ['/kept', '/tags']) await page.click(action('remove', `${at}/0`))
      expect(await args(page)).toEqual({ kept: [] })
      for (const [index, tag] of ['a', 'b', 'c'].entries()) {
        await page.click(action('add', '/tags'))
        await page.fill(field(`/tags/${index}`), tag)
      }
      await page.click(action('up', '/tags/2'))
      await page.click(action('remove', '/tags/0'))
      await page.click(action('add', '/pair'))
      await page.fill(field('/pair/0'), '7')
      await page.click(action('add', '/pair'))
      await page.selectOption(field('/pair/1'), 'true')
      expect(await page.locator(action('add', '/pair')).count()).toBe(0)
      await page.click(action('add', '/people'))
      await page.fill(field('/people/0/name'), 'Ada')
      expect(await args(page)).toEqual({
        ...{ kept: [], tags: ['c', 'b'], pair: [7, true], people: [{ name: 'Ada' }] },
      })
    }),
  )

  test(
    'a kind is chosen by anyOf or a list of types, and null by its box (needs Chromium)',
    inForm('choices', async (page) => {
      await page.fill(field('/how'), 'fast')
      expect(await args(page)).toEqual({ how: 'fast' })
      await page.selectOption(field('/how#variant'), '1')
      await page.fill(field('/how/x'), '2')
      await page.check(field('/limit#null'))
      await page.selectOption(field('/mixed#variant'), '1')
      await page.selectOption(field('/mixed'), 'true')
      await page.check(field('/old#null'))
      expect(await args(page)).toEqual({ how: { x: 2 }, limit: null, mixed: true, old: null })
      await page.uncheck(field('/limit#null'))
      await page.fill(field('/limit'), '5')
      expect(await args(page)).toMatchObject({ limit: 5 })
      // As JSON it is a value like any other.
      await page.fill(field('/any'), 'null')
      expect(await page.getAttribute(field('/any'), 'aria-invalid')).toBe('false')
      expect(await args(page)).toMatchObject({ any: null })
    }),
  )

  test(
    'a choice at the root keeps the members that all kinds share (needs Chromium)',
    inForm('root', async (page) => {
      await page.fill(field('/shared'), 's')
      await page.fill(field('/id'), '1')
      expect(await args(page)).toEqual({ shared: 's', id: 1 })
      await page.selectOption(field('#variant'), '1')
      await page.fill(field('/name'), 'n')
      expect(await args(page)).toEqual({ shared: 's', name: 'n' })
    }),
  )

  test(
    'a choice between what is required asks for no value of its own (needs Chromium)',
    inForm('required', async (page) => {
      await page.selectOption(field('#variant'), '1')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/b"]:focus')
      await page.fill(field('/b'), 'x')
      expect(await args(page)).toEqual({ b: 'x' })
    }),
  )

  test(
    'a schema that refers to itself opens on demand (needs Chromium)',
    inForm('recursive', async (page) => {
      await page.fill(field('/tree/label'), 'top')
      await page.click(action('open', '/tree/next'))
      await page.fill(field('/tree/next/label'), 'below')
      await page.click(action('add', '/tree/all'))
      await page.fill(field('/tree/all/0/label'), 'item')
      expect(await args(page)).toEqual({ tree: { label: 'top', next: { label: 'below' }, all: [{ label: 'item' }] } })
    }),
  )

  test(
    'a schema that refers to itself through a choice or a part opens on demand, too (needs Chromium)',
    inForm('optional', async (page) => {
      await page.fill(field('/label'), 'top')
      await page.locator(action('open', '/next')).first().click()
      await page.fill(field('/next/label'), 'below')
      expect(await args(page)).toEqual({ next: { label: 'below' }, label: 'top' })
    }),
  )

  test(
    'a value is shown as the kind that it is, and what no field has as JSON (needs Chromium)',
    inForm('kinds', async (page) => {
      expect(await args(page)).toEqual({ v: {}, mixed: 'auto' })
      // A default of another kind does not keep a kind from being picked.
      await page.selectOption(field('/mixed#variant'), '1')
      expect(await page.inputValue(field('/mixed#variant'))).toBe('1')
      expect(await args(page)).toEqual({ v: {} })
      // Nor does a kind change under somebody who types.
      await page.fill(field('/free'), '{"k":"v"}')
      expect(await page.inputValue(field('/free'))).toBe('{"k":"v"}')
      await page.fill(field('/free'), '')
      await page.selectOption(field('/v#variant'), '1')
      await page.fill(field('/v/b'), 'typed')
      await until(async () => (await page.evaluate<string>('Object.values(sessionStorage).join()')).includes('typed'))
      await page.reload()
      await room(page, 'tool', 'ready')
      expect(await page.inputValue(field('/v/b'))).toBe('typed')
      const write = async (json: object) => {
        await page.click('[data-action="raw"]')
        await page.fill(field('raw'), JSON.stringify(json))
        await page.click('[data-action="raw"]')
      }
      await write({ v: { a: 'raw' }, patterned: { 'x-1': 'y' }, unknown: [1], list: { not: 'a list' } })
      expect(await page.inputValue(field('/v/a'))).toBe('raw')
      expect(await page.inputValue(field('/patterned/x-1'))).toBe('"y"')
      expect(await page.inputValue(field('/unknown'))).toBe('[1]')
      expect(await page.inputValue(field('/list'))).toBe('{"not":"a list"}')
      // What is no JSON yet is not lost, and not sent.
      await page.fill(field('/patterned/x-1'), '"y')
      expect(await page.inputValue(field('/patterned/x-1'))).toBe('"y')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/patterned/x-1"]:focus')
      await write({ v: { a: 'raw' } })
      // An item is empty, and not null: the field says that it is required.
      await page.click(action('add', '/list'))
      expect(await page.inputValue(field('/list/0'))).toBe('')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/list/0"]:focus')
      await page.click(action('remove', '/list/0'))
      await page.click(action('add', '/words'))
      await page.fill(field('/words/0'), 'x')
      await page.fill(field('/words/0'), '')
      expect(await args(page)).toEqual({ v: { a: 'raw' }, words: [''] })
    }),
  )

  test(
    'other names are typed by hand, parts are joined, and a value of any kind is JSON (needs Chromium)',
    inForm('names', async (page) => {
      await page.fill(field('/known'), 'here')
      // A name that is there already keeps its value, and one that is not added yet is not left out without a word.
      await page.fill(field('#name'), 'known')
      await page.click(action('add', ''))
      expect(await args(page)).toEqual({ known: 'here' })
      await page.fill(field('#name'), 'mine')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="#name"]:focus')
      await page.fill(field('/known'), '')
      await page.click(action('add', ''))
      await page.fill(field('/mine'), '4')
      expect(await args(page)).toEqual({ mine: 4 })
      await page.click(action('remove', '/mine'))
      expect(await args(page)).toEqual({})
      await page.goto(`${server.url}/console/connections/acme/forms/tools/joined`)
      await page.fill(field('/a'), 'x')
      await page.fill(field('/b'), '2')
      expect(await args(page)).toEqual({ a: 'x', b: 2 })
      await page.goto(`${server.url}/console/connections/acme/forms/tools/any`)
      await page.fill(field('/value'), '{"a":[1,nul')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-field="/value"]:focus')
      // JSON of the whole and back: the text is there again, and keeps nobody from calling with that JSON.
      await page.click('[data-action="raw"]')
      expect(await page.inputValue(field('raw'))).toBe('{}')
      await page.click('[data-action="call"]')
      await page.waitForSelector('[data-part="result"]')
      await page.click('[data-action="raw"]')
      expect(await page.inputValue(field('/value'))).toBe('{"a":[1,nul')
      await page.fill(field('/value'), '{"a":[1,null]}')
      expect(await args(page)).toEqual({ value: { a: [1, null] } })
    }),
  )
})
