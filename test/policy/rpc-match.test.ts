import { describe, expect, test } from 'bun:test'
import {
  policyProgramSizeMax,
  rpcFoldedCharactersMax,
  rpcProgramSizeMax,
  rpcUnicodeClassesMax,
} from '../../src/limits.ts'
import { RpcBody, type RpcRule } from '../../src/policy/rpc-match.ts'
import { costToAsk, patternProblem, patternsProblem } from '../../src/schema/patterns.ts'
import { drained } from '../../src/schema/steps.ts'

const body = JSON.parse(`{
  "jsonrpc": "2.0", "id": 7, "method": "tools/call", "empty": "", "yes": true, "no": null, "big": 12345678901234567890,
  "params": { "name": "issues.create", "arguments": { "title": "A", "labels": ["x"], "0": "zero" }, "__proto__": { "x": "own" } }
}`)

const ruleMatches = (rule: RpcRule, body: unknown) => drained(new RpcBody(body).matches(rule))

describe('ruleMatches() finds', () => {
  const found: [path: string, pattern: string, because: string][] = [
    ['method', 'tools/call', 'a string as it is'],
    ['method', '^tools/', 'an anchored beginning'],
    ['method', 'call', 'a part: patterns are searched'],
    ['params.name', '^issues\\.', 'a dot-path'],
    ['params.arguments.title', '^A$', 'a deeper one'],
    ['params.arguments.0', '^zero$', 'digits as a key'],
    ['id', '^7$', 'a number by its JSON text'],
    ['yes', '^true$', 'true by its JSON text'],
    ['empty', '^$', 'an empty string'],
    ['jsonrpc', '^2\\.0$', 'a dot in the value'],
    ['params.__proto__.x', '^own$', 'an own key, whatever it is called'],
    ['method', '(?i)TOOLS', 'RE2 flags'],
    ['method', '^[[:alpha:]]+/', 'RE2 classes'],
  ]
  for (const [path, pattern, because] of found) {
    test(because, () => expect(ruleMatches({ path, pattern }, body)).toBe(true))
  }
})

test('ruleMatches() does not find a key beside one that some reader takes for the same', () => {
  for (const [key, twin] of [
    ['id', 'ID'],
    ['id', '\u0131d'],
    ['skip', '\u017fkip'],
    ['\u03c3\u03b1\u03c2', '\u03c3\u03b1\u03c3'],
    ['\u0432\u043b', '\u1c80\u043b'],
    ['id', '\uff49\uff44'],
    // Some programs in C end a text there.
    ['id', 'id\0'],
    ['id', 'ID\0x'],
    ['stra\u00dfe', 'stra\u1e9ee'],
    ['id', '\u0130d'],
    // Names of a field in protobuf's JSON.
    ['tenantId', 'tenant_id'],
    ['tenant_id', 'TenantID'],
    ['a b', 'ab'],
  ] as const) {
    const rule = { path: `params.${key}`, pattern: '^safe$' }
    expect({ twin, found: ruleMatches(rule, { params: { [key]: 'safe' } }) }).toEqual({ twin, found: true })
    expect({ twin, found: ruleMatches(rule, { params: { [key]: 'safe', [twin]: 'evil' } }) }).toEqual({
      twin,
      found: false,
    })
  }
})

describe('ruleMatches() does not find', () => {
  const missed: [path: string, because: string][] = [
    ['nope', 'a missing key'],
    ['params.nope', 'a missing key inside'],
    ['no', 'null'],
    ['params', 'an object'],
    ['params.arguments.labels', 'a list'],
    ['params.arguments.labels.0', 'a place in a list'],
    ['params.arguments.labels.length', 'the length of a list'],
    ['method.length', 'the length of a string'],
    ['method.0', 'a character'],
    ['constructor', 'an inherited name'],
    ['constructor.name', 'and what it holds'],
    ['toString', 'a method of every object'],
    ['__proto__', 'the prototype'],
    ['params.name.x', 'a key of a string'],
    ['id.x', 'a key of a number'],
  ]
  for (const [path, because] of missed) {
    test(because, () => expect(ruleMatches({ path, pattern: '.*' }, body)).toBe(false))
  }
  test('anything in what is no object', () => {
    for (const other of [null, undefined, 'x', 5, [body], true])
      expect(ruleMatches({ path: 'method', pattern: '.*' }, other)).toBe(false)
  })
  test('a value that is too long to search', () => {
    expect(ruleMatches({ path: 'x', pattern: '.' }, { x: 'a'.repeat(1024) })).toBe(true)
    expect(ruleMatches({ path: 'x', pattern: '.' }, { x: 'a'.repeat(1025) })).toBe(false)
  })
})

test('a parameter counts in requests of methods that have it: in others a client may add it, and servers ignore it', () => {
  const params = { name: 'get_x', uri: 'file:///a', arguments: { city: 'Paris' }, level: 'debug', _meta: { a: 'b' } }
  const methods = [
    ...['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe', 'resources/unsubscribe'],
    ...['resources/list', 'completion/complete', 'logging/setLevel', 'tasks/get', 'tools/call ', 'x/call', undefined],
    // A server may read them as the methods that they look like.
    ...['Resources/read', '/resources/read', 're\u017fources/read', 'PING', ' tools/list'],
  ]
  const matching = (path: string) => methods.filter((method) => ruleMatches({ path, pattern: '.' }, { method, params }))
  // An extension knows its own parameters.
  const others = ['x/call']
  const named = [...methods.slice(0, 2), ...others]
  for (const path of ['params.name', 'params.arguments.city']) expect(matching(path)).toEqual(named)
  expect(matching('params.uri')).toEqual([...methods.slice(2, 5), ...others])
  for (const path of ['params.level', 'params._meta.a']) expect(matching(path)).toEqual(methods)
  // Two keys that some servers read as one name no method.
  const twice = { method: 'resources/read', Method: 'tools/call', params }
  expect(ruleMatches({ path: 'params.name', pattern: '.' }, twice)).toBe(false)
})

describe('a rule means what every reader would read', () => {
  const amounts: [value: number, matches: boolean][] = [
    [5, true],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
    [-0, false],
  ]
  for (const [amount, matches] of amounts) {
    test(`the number ${Object.is(amount, -0) ? '-0' : amount}`, () =>
      expect(ruleMatches({ path: 'a.amount', pattern: '.' }, { a: { amount } })).toBe(matches))
  }
  const objects: [object: string, matches: boolean][] = [
    ['{"owner":"me"}', true],
    ['{"owner":"me","other":"x","Other":"y"}', true],
    ['{"owner":"me","Owner":"evil"}', false],
    ['{"OWNER":"evil","owner":"me"}', false],
    ['{"owner":"me","\uff4fwner":"evil"}', false],
    ['{"owner":"me","owner\u017f":"x"}', true],
    ['{"owner":"me","owner\\u0000":"evil"}', false],
    ['{"owner":"me\\u0000"}', false],
  ]
  for (const [text, matches] of objects) {
    test(`${text}: ${matches}`, () => {
      const args = JSON.parse(text)
      const rule = { path: 'params.arguments.owner', pattern: '^me$' }
      expect(ruleMatches(rule, { method: 'tools/call', params: { arguments: args } })).toBe(matches)
    })
  }
  test('a key that is itself the rest of a path', () => {
    const rule = { path: 'params.arguments.filter.owner', pattern: '^me$' }
    const filter = { owner: 'me' }
    for (const [params, matches] of [
      [{ arguments: { filter } }, true],
      [{ arguments: { filter, 'filter.owner': 'evil' } }, false],
      [{ arguments: { filter }, 'arguments.filter.owner': 'evil' }, false],
      [{ arguments: { filter, 'filter.other': 'x' } }, true],
    ] as const)
      expect({ params, is: ruleMatches(rule, { method: 'tools/call', params }) }).toEqual({ params, is: matches })
  })
  test('a key that looks like one on the way', () => {
    const body = { method: 'tools/call', params: { arguments: { owner: 'me' }, Arguments: { owner: 'evil' } } }
    expect(ruleMatches({ path: 'params.arguments.owner', pattern: '^me$' }, body)).toBe(false)
  })
})

test('a key of a hundred thousand marks is only looked past', () => {
  // Put in their order, they would hold the process for a minute.
  for (const marks of ['\u0315'.repeat(5e4) + '\u0300'.repeat(5e4), '\u0315\uff9e'.repeat(5e4)]) {
    expect(ruleMatches({ path: 'owner', pattern: '^me$' }, { owner: 'me', [`a${marks}`]: 1 })).toBe(true)
    expect(ruleMatches({ path: 'owner', pattern: '^me$' }, { owner: 'me', [`a${marks}`]: 1, Owner: 2 })).toBe(false)
  }
})

test('an object with keys that would take long to compare matches nothing', () => {
  const rule = { path: 'owner', pattern: '^me$' }
  expect(ruleMatches(rule, { owner: 'me', ['\ufdfa'.repeat(1000)]: 1 })).toBe(true)
  expect(ruleMatches(rule, { owner: 'me', ['\ufdfa'.repeat(20_000)]: 1 })).toBe(false)
  const many = Array.from({ length: 20_000 }, (_, index) => [`é${index}`, 1])
  expect(ruleMatches(rule, { owner: 'me', ...Object.fromEntries(many) })).toBe(false)
  expect(ruleMatches(rule, { owner: 'me', ['x'.repeat(100_000)]: 1 })).toBe(true)
})

test('keys that differ in how their marks are written are alike', () => {
  const rule = { path: 'é', pattern: '.' }
  expect(ruleMatches(rule, { é: 'x' })).toBe(true)
  expect(ruleMatches(rule, { é: 'x', 'e\u0301': 'y' })).toBe(false)
})

describe('patterns of a policy', () => {
  const many = (pattern: string, count: number) => Array.from({ length: count }, (_, i) => `${pattern}${i}`)
  test('may be many where they are small', () => {
    expect(patternsProblem(many('^issues\\.get', 100))).toBeUndefined()
  })
  const tooMuch: [what: string, patterns: string[], at: number, message: string][] = [
    ['programs', many('a.{600}', 5), 3, 'one pattern too many'],
    ['Unicode classes', many('\\pL', 10), 8, 'too costly a pattern'],
    ['characters without case', many('(?i)[\u0041-\u0300]', 5), 2, 'too costly a pattern'],
  ]
  for (const [what, patterns, at, message] of tooMuch) {
    test(`have a bound together, of their ${what}`, () => {
      for (const pattern of patterns) expect(patternProblem(pattern)).toBeUndefined()
      expect(patternsProblem(patterns)).toEqual({ at, message: expect.stringContaining(message) })
    })
  }
  /** A pattern of so many instructions. */
  const ofSize = (size: number) => {
    const more = size - sizeOf('^a{100}$') + 100
    const pattern = `^a{${more}}$`
    expect(sizeOf(pattern)).toBe(size)
    return pattern
  }
  const sizeOf = (pattern: string) => {
    expect(patternProblem(pattern)).toBeUndefined()
    return costToAsk(pattern, '')
  }
  test('may fill their bounds to the last instruction, class and character', () => {
    const most = ofSize(rpcProgramSizeMax)
    expect(patternProblem(most.replace('$', 'b$'))).toStartWith('is too large a pattern')
    const half = (policyProgramSizeMax - rpcProgramSizeMax) / 2
    expect(patternsProblem([most, ofSize(half), ofSize(half)])).toBeUndefined()
    const tooMany = { at: 2, message: expect.stringContaining('one pattern too many') }
    expect(patternsProblem([most, ofSize(half), ofSize(half + 1)])).toEqual(tooMany)

    const classes = '\\pL'.repeat(rpcUnicodeClassesMax)
    expect(patternProblem(classes)).toBeUndefined()
    expect(patternsProblem(['a', classes, 'b', '\\PN'])).toMatchObject({ at: 3 })

    const folded = (characters: number) => `(?i)z-a[\\x{100}-\\x{${(0x100 + characters).toString(16)}}]`
    expect(patternProblem(folded(rpcFoldedCharactersMax))).toBeUndefined()
    expect(patternProblem(folded(rpcFoldedCharactersMax + 1))).toContain('too costly')
    // What has case adds nothing, and hides nothing.
    expect(patternsProblem(['[a-z]', folded(rpcFoldedCharactersMax), '[a-z]'])).toBeUndefined()
    expect(patternsProblem(['[a-z]', folded(rpcFoldedCharactersMax), '(?i)[a-b]'])).toMatchObject({ at: 2 })
  })
  test('cost their program times the text', () => {
    expect(patternProblem('^cost{7}$')).toBeUndefined()
    const cost = (length: number) => costToAsk('^cost{7}$', 'x'.repeat(length))
    expect(cost(200) / cost(100)).toBeCloseTo(2, 1)
  })
})

describe('patterns', () => {
  const refused = [
    '(',
    'a**',
    '[z-a]',
    '(?=a)',
    '(?<!a)',
    '(a)\\1',
    '\\Bx',
    'x\\B',
    '\\C',
    '(?P<n>a)(?P<n>b)',
    'a{1001}',
    '(?:(?:a{30}){30}){30}',
    '\\',
  ]
  for (const pattern of refused) test(`${pattern} is refused`, () => expect(patternProblem(pattern)).toBeString())

  const accepted = [
    'a',
    '^tools/(?:call|list)$',
    '\\\\B',
    'a{900}',
    '\\bword\\b',
    '(?P<n>a)',
    '\\pL',
    '[\\w.-]+',
    '(a+)+$',
    '\\QB\\E',
  ]
  for (const pattern of accepted) test(`${pattern} is accepted`, () => expect(patternProblem(pattern)).toBeUndefined())

  // The runtime's own engine gives up on this one and answers wrongly; RE2 answers, and fast.
  test('a pattern made to backtrack gets the right answer', () => {
    const rule = { path: 'x', pattern: '^(?:(a+)+c|a+!)$' }
    expect(ruleMatches(rule, { x: `${'a'.repeat(1000)}!` })).toBe(true)
    expect(ruleMatches(rule, { x: 'a'.repeat(1000) })).toBe(false)
  })
})

/** RE2's dialect where others differ: what it matches, and what it refuses (R3). */
describe('the dialect', () => {
  const golden: [pattern: string, text: string, matches: boolean][] = [
    ['^\\s$', '\u00a0', false],
    ['^\\s$', '\v', false],
    ['^.$', '\r', true],
    ['^.$', '\u2028', true],
    ['^.$', '\n', false],
    ['^.$', '😀', true],
    ['^\\d$', '٣', false],
    ['^\\w$', 'é', false],
    ['^\\pL$', 'é', true],
    ['(?i)^straße$', 'STRASSE', false],
    ['(?i)^k$', '\u212a', true],
    ['^[[:alpha:]]$', 'a', true],
    ['^[^a]$', '\n', true],
    ['a$', 'a\n', false],
    ['(?m)a$', 'a\nb', true],
    ['\\bcafé\\b', 'café', false],
    ['^a{2,3}$', 'aaaa', false],
    ['', 'anything', true],
  ]
  for (const [pattern, text, matches] of golden) {
    test(`${pattern} on ${JSON.stringify(text)}: ${matches}`, () =>
      expect(ruleMatches({ path: 'x', pattern }, { x: text })).toBe(matches))
  }
  test('a pattern without ^ and $ is found anywhere, so it admits more than its words', () => {
    expect(ruleMatches({ path: 'x', pattern: 'search' }, { x: 'search_and_delete' })).toBe(true)
    expect(ruleMatches({ path: 'x', pattern: '^search$' }, { x: 'search_and_delete' })).toBe(false)
  })
})

describe('patterns that are costly to compile are refused before they are', () => {
  const costly = [
    `(?i)[${'B-\u{1e942}'.repeat(120)}]`,
    '(?i)[\\x{41}-\\x{10ffff}]',
    '(?si)[a-\u{ffff}]',
    '(?:(?i:[\u0001-\uffff]))',
    '\\pL'.repeat(9),
    '\\p{Greek}'.repeat(163),
  ]
  for (const pattern of costly) {
    test(pattern.slice(0, 30), () => expect(patternProblem(pattern)).toContain('too costly'))
  }
  for (const pattern of ['(?i)^issues\\.[a-z0-9-]+$', '[\u0001-\uffff]', '\\p{L}+ \\p{N}+', '(?i)[\\x{61}-\\x{7a}]']) {
    test(`${pattern} is not`, () => expect(patternProblem(pattern)).toBeUndefined())
  }
})

test('the keys of an object are looked at once, however many rules ask', () => {
  let looked = 0
  const counted = new Proxy(
    { method: 'tools/call', a: 1, b: 2 },
    {
      ownKeys(target) {
        looked += 1
        return Reflect.ownKeys(target)
      },
    },
  )
  const read = new RpcBody(counted)
  for (let i = 0; i < 50; i += 1) for (const path of ['a', 'b', 'c']) read.textAt(path)
  expect(looked).toBe(1)
})
