import { beforeAll, describe, expect, test } from 'bun:test'
import Ajv, { type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { referenceHandlers } from '../../../src/features/reference/routes.ts'
import { readCases, runCase, titleOf } from '../../api/cases.ts'
import { createTestPlatform, issuer, type TestPlatform } from '../../support/platform.ts'

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: { readonly $ref: string }; readonly example?: object }>>
}
interface Operation {
  readonly requestBody?: Content
  readonly responses: Readonly<Record<string, Content>>
}
interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

let platform: TestPlatform
let document: Document
const validators = new Map<string, ValidateFunction>()
beforeAll(async () => {
  platform = await createTestPlatform()
  document = (await (await platform.fetch('/openapi.json')).json()) as Document
  const ajv = new Ajv({ strict: false, allErrors: true })
  addFormats(ajv)
  ajv.addSchema({ $id: 'document', components: document.components })
  for (const name of Object.keys(document.components.schemas)) {
    validators.set(`#/components/schemas/${name}`, ajv.compile({ $ref: `document#/components/schemas/${name}` }))
  }
})

function operationOf(path: string, method: string): Operation | undefined {
  const patterns: readonly (readonly [RegExp, string])[] = [
    [/^\/tokens$/, '/tokens'],
    [/^\/connect\/[^/]+$/, '/connect/{namespace}'],
    [/^\/servers\/.+$/, '/servers/{qualifiedName}'],
    [/^\/health$/, '/health'],
    [/^\/\.well-known\/jwks\.json$/, '/.well-known/jwks.json'],
  ]
  const found = patterns.find(([pattern]) => pattern.test(path.split('?')[0] ?? ''))?.[1]
  return found === undefined ? undefined : document.paths[found]?.[method.toLowerCase()]
}

function problems(content: Content, value: unknown): unknown {
  const { $ref = '' } = content.content['application/json']?.schema ?? {}
  const validate = validators.get($ref)
  if (validate === undefined) return `there is no schema ${$ref}`
  return validate(value) ? [] : validate.errors
}

describe('what the platform answers is what its document says', () => {
  let answers = 0
  for (const one of readCases()) {
    test(titleOf(one), () =>
      runCase(one, async (path, init) => {
        const response = await platform.fetch(path, init)
        const operation = operationOf(path, init.method ?? 'GET')
        // A path of another method, or one that names nothing, is of no operation.
        if (operation === undefined || response.status === 405) return response
        const described = operation.responses[String(response.status)]
        const value = await response.clone().json()
        if (path.startsWith('/servers/') || response.status !== 403 || described !== undefined) {
          expect({ path, status: response.status, described: described !== undefined }).toMatchObject({
            described: true,
          })
        }
        if (described !== undefined)
          expect({ path, problems: problems(described, value) }).toEqual({ path, problems: [] })
        if (response.status === 200 && typeof init.body === 'string' && init.body !== 'null') {
          const body = operation.requestBody as Content
          expect({ body: init.body, problems: problems(body, JSON.parse(init.body)) }).toMatchObject({ problems: [] })
        }
        answers += 1
        return response
      }),
    )
  }
  test('many answers were held to it', () => expect(answers).toBeGreaterThan(300))
})

test('the document stands on its own: every reference is there', () => {
  const text = JSON.stringify(document)
  for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
    expect(Object.keys(document.components.schemas)).toContain(name)
  }
  expect(document.openapi).toBe('3.1.0')
  expect(text).toContain(issuer)
  expect(text).not.toContain('errorMessage')
})

test('the reference page needs no script and no network, and says so to the browser', async () => {
  const response = await platform.fetch('/docs/api')
  const page = await response.text()
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /)
  expect(page).not.toMatch(
    /<script|<link|<img|src=|style="| on\w+=|href="(?!#|\/openapi\.json"|\/docs["/])|url\(|@import/,
  )
  for (const path of Object.keys(document.paths)) expect(page).toContain(path.replace('&', '&amp;'))
  const ids = new Set([...page.matchAll(/id="(\w+)"/g)].map(([, id]) => id))
  for (const [, name] of page.matchAll(/href="#(\w+)"/g)) expect(ids).toContain(name)
})

test('the reference page is sound: a main part, contents, no empty link or heading, and words that may break', async () => {
  const page = await (await platform.fetch('/docs/api')).text()
  expect(page.match(/<main>/g)).toHaveLength(1)
  expect(page).not.toMatch(/href="#"|<code><\/code>|<th><\/th>|<td><\/td>/)
  const [contents = ''] = /<nav [^]*<\/nav>/.exec(page) ?? []
  const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))
  expect(contents.match(/href="#\w+"/g)).toHaveLength(operations.length + 1)
  // A long word would make a narrow window scroll sideways.
  expect(page).toContain('overflow-wrap: anywhere')
})

test('the document has an example for every body, and each is what it is an example of', () => {
  const bodies = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .flatMap(({ requestBody }) => requestBody ?? [])
  expect(bodies.length).toBeGreaterThan(4)
  for (const body of bodies) {
    const { example } = body.content['application/json'] ?? {}
    expect({ example, problems: problems(body, example) }).toEqual({ example: expect.any(Object), problems: [] })
  }
})

test('browsers that ask for an icon are told that there is none', async () => {
  expect((await platform.fetch('/favicon.ico')).status).toBe(204)
})

test('the address alone leads to the reference page, under the path of the base URL', async () => {
  const response = await platform.fetch('/')
  expect({ status: response.status, location: response.headers.get('location') }).toEqual({
    status: 302,
    location: '/docs',
  })
  expect((await platform.fetch('/', { method: 'POST' })).headers.get('allow')).toBe('GET')
  expect((await platform.fetch('/', { headers: { host: 'evil.example' } })).status).toBe(403)
  const below = await referenceHandlers('https://example.com/gate').home(new Request('http://localhost/'))
  expect(below.headers.get('location')).toBe('/gate/docs')
})
