/** The bill of materials of an executable: CycloneDX 1.6 as JSON. The same source gives the same text. */

import { version } from '../version.ts'
import type { LockedPackage } from './packages.ts'

/** The bill of materials for a target. `hash`: of the executable, SHA-256 in hex. */
export function sbom(target: string, hash: string, packages: readonly LockedPackage[]): string {
  const root = `pkg:generic/postern@${version}?target=${target}`
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': root,
        name: 'postern',
        version,
        purl: root,
        hashes: [{ alg: 'SHA-256', content: hash }],
        licenses: [{ license: { id: 'MIT' } }],
      },
    },
    components: packages.map(component),
    dependencies: [{ ref: root, dependsOn: packages.map(purl) }],
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

function component(one: LockedPackage): object {
  const digest = Buffer.from(one.integrity.replace('sha512-', ''), 'base64').toString('hex')
  return {
    type: 'library',
    'bom-ref': purl(one),
    name: one.name,
    version: one.version,
    purl: purl(one),
    // The hash of the package in the registry.
    hashes: [{ alg: 'SHA-512', content: digest }],
    // The addons of LMDB hold it, which is under a licence of its own.
    licenses: one.name.startsWith('@lmdb/')
      ? [{ expression: `${one.license} AND OLDAP-2.8` }]
      : [{ license: { id: one.license } }],
  }
}

/** A package URL. The `@` of a scope is percent-encoded. */
function purl({ name, version }: LockedPackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}
