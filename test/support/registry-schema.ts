/** The official MCP Registry's published schema of its answers. */

import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import schema from './registry-schema.json' with { type: 'json' }

const ajv = new Ajv({ strict: false, allErrors: true })
addFormats(ajv)
ajv.addSchema({ $id: 'registry', ...schema })

export const isRegistryPage = ajv.compile({ $ref: 'registry#/$defs/ServerList' })
export const isRegistryEntry = ajv.compile({ $ref: 'registry#/$defs/ServerResponse' })
