/** The OpenAPI words for the operations of servers. */

import * as limits from '../../limits.ts'
import * as model from '../../model/server.ts'
import { RegistryEntry, RegistryPage, ServersImport, ServersImported } from '../../model/server-json.ts'
import type { OperationId } from '../../operations.ts'
import { flag, integer, pages, query, time, type Words } from './operation-words.ts'

const registryErrors = {
  400: 'A parameter is unknown, given twice, or out of range',
  401: 'The registry, or what the request asks for, needs a credential',
  404: 'There is no such registry or entry, or the registry is off',
}

const readErrors = { 403: 'The token does not allow this', 404: 'Server not found' }
const writeErrors = {
  403: 'The token does not allow this, the caller does not manage the namespace, the namespace is full, or its owner has 10,000 servers',
  404: 'Server not found, or the caller may not access its namespace',
}
const ofFixture = { 409: 'A fixture defines this server: change it in the fixture' }
const tooLarge = { 413: 'The body is too large' }

export const serverWords: Readonly<Partial<Record<OperationId, Words>>> = {
  listServers: {
    summary: 'List servers, or search them',
    description:
      'Sorts servers by qualified name, or with `q` by how well they match, the best first. A server must have every word of `q`; the last word may be only the beginning of a word. A server must match all filters. A page past the end is empty.',
    parameters: [
      ...pages('Servers', limits.serversPageMax, limits.serversPageDefault),
      query('q', 'Words to search for', { type: 'string', minLength: 1, maxLength: limits.searchCharsMax }),
      query(
        'topK',
        'The largest number of servers to find',
        integer(limits.searchHitsMin, limits.searchHitsMax, limits.searchHitsMax),
      ),
      query('seed', 'Has no effect', { type: 'integer', minimum: 0 }),
      query('fields', 'The fields to show, separated by commas'),
      query('namespace', 'The server’s namespace'),
      query('qualifiedName', 'Exactly this name'),
      query('ids', 'Ids, separated by commas'),
      query('remote', 'Whether the server is remote', flag),
      query('isDeployed', 'Whether the server can be reached over HTTP', flag),
      query('verified', 'Whether an operator has verified the server', flag),
      query('smitheryManaged', 'Whether others manage the server; `true` finds nothing', flag),
      query(
        'ownerId',
        'The user or organization that owns the server’s namespace, if the caller may access that namespace',
      ),
      query('repoOwner', 'The owner of the server’s repository'),
      query('repoName', 'The name of the server’s repository'),
    ],
    answer: model.ServerPage,
    errors: {
      400: 'A parameter is unknown, given twice, or out of range',
      403: readErrors[403],
      404: 'The path ends with a slash',
    },
  },
  getServer: {
    summary: 'Read a server’s details',
    description:
      'Shows connection options, tools, resources and prompts. You may write the slash of the qualified name as `%2F`.',
    answer: model.ServerDetail,
    errors: { 400: 'This operation takes no parameters', ...readErrors },
  },
  putServer: {
    summary: 'Register a server, or change it',
    description:
      'Fields that you leave out keep their values. With `mcpUrl`, postern asks the server for its tools, resources and prompts, and a new server also for its title and description. `warnings` says what the server did not answer; postern leaves that part as it was.',
    body: model.ServerWrite,
    example: { displayName: 'Weather', mcpUrl: 'https://mcp.example.com/mcp' },
    made: model.ServerMade,
    errors: { ...writeErrors, ...ofFixture, ...tooLarge, 404: 'Namespace not found' },
  },
  changeServer: {
    summary: 'Update a server’s description',
    description: 'Only operators set `verified`.',
    body: model.ServerChange,
    example: { description: 'Weather of the whole world', unlisted: true },
    answer: model.ServerChanged,
    errors: { ...writeErrors, ...ofFixture, ...tooLarge },
  },
  deleteServer: {
    summary: 'Delete a server',
    description: 'Connections that lead to the server stay.',
    answer: model.ServerChanged,
    errors: { ...writeErrors, ...ofFixture },
  },
  importServers: {
    summary: 'Register the servers of another registry',
    description:
      'Operators only. Registers at most 500 servers in one write. Send `server.json` documents, or pages of a registry. postern puts each server into the namespace that its name begins with, or all servers into `namespace`. It creates missing namespaces, which belong to `owner`, or to you. The answer names each server that postern left out, with the reason.',
    body: ServersImport,
    example: {
      servers: [{ name: 'com.example/weather', description: 'Weather', version: '1.0.0' }],
      namespace: 'tools',
    },
    answer: ServersImported,
    errors: { 403: 'The caller is not an operator with an API key', ...tooLarge },
  },
  introspectServer: {
    summary: 'Refresh a server’s tools',
    description: 'Asks the server at its URL for tools, resources and prompts, and replaces the stored ones.',
    answer: model.ServerDetail,
    errors: {
      ...writeErrors,
      400: 'The server has no URL, or the request cannot be read',
      409: `${ofFixture[409]}. Or the server’s URL changed in the meantime`,
      502: 'The server cannot be reached, or did not answer as MCP servers do; nothing has changed',
    },
  },
  listRegistryServers: {
    summary: 'List servers as the official MCP Registry does',
    description:
      'For editors that read a registry. Lists one version of each server, sorted by name. If postern runs with `--open-registry`, this operation needs no credential.',
    parameters: [
      query('cursor', '`metadata.nextCursor` of the page before'),
      query('limit', 'Servers on a page', integer(1, limits.registryPageMax, limits.registryPageDefault)),
      query('search', 'A part of the name, in upper or lower case'),
      query('updated_since', 'Only servers written at this time or later', time),
      query('version', '`latest`, or exactly this version'),
      query('include_deleted', 'Has no effect', flag),
    ],
    answer: RegistryPage,
    errors: { 400: 'A parameter is unknown, given twice, or out of range', 403: readErrors[403] },
  },
  listNamespaceRegistry: {
    summary: 'List the endpoint and the views of a namespace for editors',
    description:
      'Answers as the official MCP Registry does; the entries lead to this postern. The namespace’s setting `registry` says who may read it: nobody, anybody, or a credential that reaches the namespace. A link of `registry-links` has `NAMESPACE~SECRET` in place of the namespace, and needs no credential.',
    parameters: [
      query('cursor', '`metadata.nextCursor` of the page before; it holds `search`, `version` and `include`'),
      query('limit', 'Entries on a page', integer(1, limits.registryPageMax, limits.registryPageDefault)),
      query('search', 'A part of the name, title or description, in upper or lower case'),
      query('updated_since', 'Only entries that changed at this time or later', time),
      query('version', '`latest`, or exactly this version'),
      query('include', '`connections`: also each connection that the caller may read; needs a credential'),
    ],
    answer: RegistryPage,
    errors: registryErrors,
  },
  listNamespaceVersions: {
    summary: 'List the versions of an entry of a namespace’s registry',
    description: 'Each entry has exactly one version.',
    answer: RegistryPage,
    errors: registryErrors,
  },
  getNamespaceVersion: {
    summary: 'Read an entry of a namespace’s registry',
    description: 'Returns the entry’s `server.json`. The last number of its version counts the changes of the entry.',
    answer: RegistryEntry,
    errors: registryErrors,
  },
  listRegistryVersions: {
    summary: 'List the versions of a server as the official MCP Registry does',
    description: 'Each server has exactly one version.',
    answer: RegistryPage,
    errors: { 400: 'A parameter is unknown', ...readErrors },
  },
  getRegistryVersion: {
    summary: 'Read a version of a server as the official MCP Registry does',
    description: 'Returns the server’s `server.json`.',
    answer: RegistryEntry,
    errors: { 400: 'A parameter is unknown', ...readErrors },
  },
  createRelease: {
    summary: 'Publish a server that is hosted elsewhere',
    description:
      'Send a form (`multipart/form-data`) whose `payload` is a `ReleasePayload` as JSON. postern registers its `upstreamUrl` as `PUT /servers/{qualifiedName}` registers an `mcpUrl`.',
    accepted: { description: 'OK', body: model.ReleaseMade },
    errors: { ...writeErrors, ...ofFixture, ...tooLarge },
  },
  getRelease: {
    summary: 'Read the last release of a server',
    description: 'postern keeps only the last release.',
    answer: model.Release,
    errors: { 400: 'This operation takes no parameters', ...readErrors },
  },
}
