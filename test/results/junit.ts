/** What the runner, and the torture, wrote of each test: JUnit's format. */

export interface Result {
  /** Below `test/`. */
  readonly file: string
  /** Of its `describe`s and itself, from the outside in, with ` > ` between them. */
  readonly title: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  /** Why it was skipped, where that was written. */
  readonly reason?: string
}

/**
 * Not a reader of XML: titles hold bytes that no XML may have, and the runner writes them all the same. It also writes
 * the hooks of a group that it skipped, as tests without a name, and they are left out.
 */
export function readResults(text: string): Result[] {
  return [...text.matchAll(/<testcase ([^>]*?)(\/>|>([^]*?)<\/testcase>)/g)]
    .filter(
      ([, attributes = '', , inner = '']) => !(/name="\(unnamed\)"/.test(attributes) && inner.includes('<skipped')),
    )
    .map(([, attributes = '', , inner = '']) => {
      const read = (from: string, name: string) => plain(new RegExp(`(?:^| )${name}="([^"]*)"`).exec(from)?.[1] ?? '')
      // The runner has the innermost first.
      const groups = read(attributes, 'classname').split(' > ').reverse()
      const title = [...groups, read(attributes, 'name')].filter((part) => part !== '').join(' > ')
      const file = read(attributes, 'file').replace(/^test\//, '')
      const [, skipped] = /<skipped([^>]*)>/.exec(inner) ?? []
      if (skipped === undefined) return { file, title, outcome: /<(?:failure|error)/.test(inner) ? 'failed' : 'passed' }
      const reason = read(skipped, 'message')
      return { file, title, outcome: 'skipped', ...(reason !== '' && { reason }) }
    })
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function plain(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (name !== undefined) return entities[name] ?? whole
    return String.fromCodePoint(Number.parseInt(hex ?? decimal, hex === undefined ? 10 : 16))
  })
}

export interface Written {
  readonly file: string
  readonly title: string
  readonly seconds: number
  readonly failure?: string
  readonly skipped?: string
}

export function writeResults(results: readonly Written[]): string {
  const attribute = (text: string) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`)
  const lines = results.map(({ file, title, seconds, failure, skipped }) => {
    const head = `  <testcase name="${attribute(title)}" classname="" time="${seconds}" file="${attribute(file)}"`
    if (failure !== undefined) return `${head}><failure message="${attribute(failure)}"/></testcase>`
    return skipped === undefined ? `${head}/>` : `${head}><skipped message="${attribute(skipped)}"/></testcase>`
  })
  return ['<testsuites>', ...lines, '</testsuites>', ''].join('\n')
}
