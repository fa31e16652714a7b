/** The OpenAPI words for the operations of servers. */

import * as limits from '../../limits.ts'
import * as model from '../../model/server.ts'
import { RegistryEntry, RegistryPage, ServerJson, ServersImport, ServersImported } from '../../model/server-json.ts'
import type { OperationId } from '../../operations.ts'
import { flag, integer, query, type Words } from './operation-words.ts'

/** Schemas by their name in the document. */
export const serverSchemas = {
  ServerDetail: model.ServerDetail,
  ServerItem: model.ServerItem,
  ServerPage: model.ServerPage,
  ServerWrite: model.ServerWrite,
  ServerMade: model.ServerMade,
  ServerChange: model.ServerChange,
  ServerChanged: model.ServerChanged,
  ReleasePayload: model.ReleasePayload,
  ReleaseMade: model.ReleaseMade,
  Release: model.Release,
  ServerJson,
  ServersImport,
  ServersImported,
  RegistryEntry,
  RegistryPage,
}

const readErrors = { 403: 'The token does not allow this', 404: 'Server not found' }
const writeErrors = {
  403: 'The token does not allow this, the caller does not manage the namespace, the namespace is full, or its owner has 10,000 servers',
  404: 'Server not found, or the caller may not access its namespace',
}
const ofFixture = { 409: 'A fixture defines it: it is changed there' }
const tooLarge = { 413: 'The body is too large' }

export const serverWords: Readonly<Partial<Record<OperationId, Words>>> = {
  listServers: {
    summary: 'List servers, or search them',
    description:
      'By qualified name; with `q`, the best first: every word must be there, the last one may be the beginning of one. All filters must hold. A page past the end is empty.',
    parameters: [
      query('page', 'From 1', integer(1, undefined, 1)),
      query('pageSize', 'Servers on a page', integer(1, limits.serversPageMax, limits.serversPageDefault)),
      query('q', 'Words', { type: 'string', minLength: 1, maxLength: limits.searchCharsMax }),
      query(
        'topK',
        'The most that are found',
        integer(limits.searchHitsMin, limits.searchHitsMax, limits.searchHitsMax),
      ),
      query('seed', 'Has no effect', { type: 'integer', minimum: 0 }),
      query('fields', 'The fields to show, separated by commas'),
      query('namespace', 'Its namespace'),
      query('qualifiedName', 'Exactly this name'),
      query('ids', 'Ids, separated by commas'),
      query('remote', 'Whether it is remote', flag),
      query('isDeployed', 'Whether it can be reached by HTTP', flag),
      query('verified', 'Whether an operator has verified it', flag),
      query('smitheryManaged', 'Whether others manage it; none is', flag),
      query('ownerId', 'The user or organization that owns its namespace, if the caller may access that'),
      query('repoOwner', 'The owner of its repository'),
      query('repoName', 'The name of its repository'),
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
    description: 'Connection options, tools, resources and prompts. The slash of a qualified name may come as `%2F`.',
    answer: model.ServerDetail,
    errors: { 400: 'This operation takes no parameters', ...readErrors },
  },
  putServer: {
    summary: 'Register a server, or change it',
    description:
      'Fields that are left out stay. With `mcpUrl`, the server is asked for its tools, resources and prompts, and a new one for its title and description; `warnings` says what it did not answer, which stays as it was.',
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
    description: 'Connections that were made to it stay.',
    answer: model.ServerChanged,
    errors: { ...writeErrors, ...ofFixture },
  },
  importServers: {
    summary: 'Register the servers of another registry',
    description:
      'Operators only. At most 500, in one write: `server.json` documents, or pages of a registry. Each is in the namespace of its name, or all are in `namespace`; namespaces that are missing are made and belong to `owner`, or to you. A server that cannot be taken is left out, with the reason.',
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
    description: 'Its tools, resources and prompts become what the server at its URL answers.',
    answer: model.ServerDetail,
    errors: {
      ...writeErrors,
      400: 'The server has no URL, or the request cannot be read',
      409: `${ofFixture[409]}. Or its URL was changed meanwhile`,
      502: 'The server cannot be reached, or did not answer as MCP servers do; nothing has changed',
    },
  },
  listRegistryServers: {
    summary: 'List servers as the official MCP Registry does',
    description:
      'For editors that read a registry. One version of each server, by name. With `--open-registry` it needs no credential.',
    parameters: [
      query('cursor', '`metadata.nextCursor` of the page before'),
      query('limit', 'Servers on a page', integer(1, limits.registryPageMax, limits.registryPageDefault)),
      query('search', 'A part of the name, in any case of letters'),
      query('updated_since', 'Only what was written at this time or later', { type: 'string', format: 'date-time' }),
      query('version', '`latest`, or exactly this version'),
      query('include_deleted', 'Has no effect', flag),
    ],
    answer: RegistryPage,
    errors: { 400: 'A parameter is unknown, given twice, or out of range', 403: readErrors[403] },
  },
  listRegistryVersions: {
    summary: 'List the versions of a server as the official MCP Registry does',
    description: 'There is one.',
    answer: RegistryPage,
    errors: { 400: 'A parameter is unknown', ...readErrors },
  },
  getRegistryVersion: {
    summary: 'Read a version of a server as the official MCP Registry does',
    description: 'Its `server.json`.',
    answer: RegistryEntry,
    errors: { 400: 'A parameter is unknown', ...readErrors },
  },
  createRelease: {
    summary: 'Publish a server that is hosted elsewhere',
    description: 'A form (`multipart/form-data`) whose `payload` is this JSON. It registers the URL as `mcpUrl` does.',
    accepted: { description: 'OK', body: model.ReleaseMade },
    errors: { ...writeErrors, ...ofFixture, ...tooLarge },
  },
  getRelease: {
    summary: 'Read the last release of a server',
    description: 'Others are not kept.',
    answer: model.Release,
    errors: { 400: 'This operation takes no parameters', ...readErrors },
  },
}
