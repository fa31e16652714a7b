/** The OpenAPI words for the operations of the directory: `/me`, namespaces, organizations and their keys. */

import { listPageMax, namespacesPageMax } from '../../limits.ts'
import * as model from '../../model/organization.ts'
import type { OperationId } from '../../operations.ts'
import { flag, integer, query, type Words } from './operation-words.ts'

/** Schemas by their name in the document. */
export const organizationSchemas = {
  Me: model.Me,
  Pagination: model.Pagination,
  NamespacePage: model.NamespacePage,
  NamespaceMade: model.NamespaceMade,
  NamespaceDetail: model.NamespaceDetail,
  NamespaceDeleted: model.NamespaceDeleted,
  NamespaceWrite: model.NamespaceWrite,
  NamespaceChange: model.NamespaceChange,
  OrganizationDetail: model.OrganizationDetail,
  OrganizationWrite: model.OrganizationWrite,
  Member: model.Member,
  MemberWrite: model.MemberWrite,
  ApiKeyList: model.ApiKeyList,
  ApiKeyMade: model.ApiKeyMade,
  ApiKeyWrite: model.ApiKeyWrite,
  ApiKeyPage: model.ApiKeyPage,
  AnyApiKeyWrite: model.AnyApiKeyWrite,
  GrantPage: model.GrantPage,
  Done: model.Done,
}

const namespaceErrors = {
  403: 'The token does not allow this, or the caller does not manage the namespace',
  404: 'Namespace not found',
}
const organizationErrors = {
  403: 'A token or an organization’s own key was sent, or the caller’s role does not allow this',
  404: 'Organization not found, or the caller is not a member of it',
}
const keyErrors = {
  403: 'The caller is not an owner or admin of such an organization, or a token was sent',
}
const ownErrors = { 403: 'A token or an organization’s own key was sent' }
const operatorErrors = { 403: 'The caller is not an operator with an API key' }
const pages = [
  query('page', 'From 1', integer(1, undefined, 1)),
  query('pageSize', 'Items on a page', integer(1, listPageMax, listPageMax)),
]
const ofUser = query('userId', 'Those of this user')
const ofFixture = 'A fixture defines it: it is changed there'

export const organizationWords: Readonly<Partial<Record<OperationId, Words>>> = {
  getMe: {
    summary: 'Who am I?',
    description:
      'The caller, its key or token, its organizations, and the namespaces that it may access with what it may do in each (`servers:read`, …); the first 100.',
    answer: model.Me,
  },
  listNamespaces: {
    summary: 'List namespaces',
    description: 'Those that the caller may access and its policy allows, by name.',
    parameters: [
      query('page', 'From 1', integer(1, undefined, 1)),
      query('pageSize', 'Namespaces on a page', integer(1, namespacesPageMax, namespacesPageMax)),
      query('q', 'The beginning of the name'),
      query('ownerId', 'The user or organization that owns it'),
      query('hasServers', 'Whether it has servers', flag),
      query('hasSkills', 'Whether it has skills; none has', flag),
      query('fields', 'The fields to show, separated by commas'),
    ],
    answer: model.NamespacePage,
    errors: { 403: 'The token does not allow this' },
  },
  createNamespace: {
    summary: 'Create a namespace with a generated name',
    description: 'For a caller that owns none yet.',
    made: model.NamespaceMade,
    errors: {
      400: 'The caller owns a namespace already, or the request cannot be read',
      403: 'The token does not allow this',
    },
  },
  getNamespace: {
    summary: 'Read a namespace',
    description: '`pins` is stored and shown; tools are not compared with what was accepted yet.',
    answer: model.NamespaceDetail,
    errors: namespaceErrors,
  },
  putNamespace: {
    summary: 'Make a namespace',
    description:
      'It belongs to the caller, or to the organization that the caller acts for or names. A namespace that the caller manages already is answered as it is.',
    body: model.NamespaceWrite,
    example: { organizationId: 'org_acme' },
    made: model.NamespaceMade,
    errors: {
      ...namespaceErrors,
      403: 'The token does not allow this, the caller does not manage the namespace or organization, or owns as many as it may',
      409: 'The name is taken, in any case of letters, or the namespace is being deleted',
    },
  },
  changeNamespace: {
    summary: 'Change a namespace',
    description:
      '`pins`: what should happen when a pinned tool changes. It is stored and shown; tools are not compared yet.',
    body: model.NamespaceChange,
    example: { pins: 'block' },
    answer: model.NamespaceDetail,
    errors: { ...namespaceErrors, 409: ofFixture },
  },
  deleteNamespace: {
    summary: 'Delete a namespace with its connections',
    description:
      'Nobody can access it from then on; its name is free when its connections are gone, which may be after the answer. ' +
      'Its servers must be deleted first.',
    answer: model.NamespaceDeleted,
    errors: { ...namespaceErrors, 409: 'It has servers, or a fixture brought it' },
  },
  getOrganization: {
    summary: 'Read an organization',
    description: 'With its members. API keys only.',
    answer: model.OrganizationDetail,
    errors: organizationErrors,
  },
  putOrganization: {
    summary: 'Make an organization, or rename it',
    description: 'Operators only. `owner` becomes an owner.',
    body: model.OrganizationWrite,
    example: { name: 'Acme', owner: 'ada' },
    answer: model.OrganizationDetail,
    made: model.OrganizationDetail,
    errors: { ...organizationErrors, 409: ofFixture },
  },
  deleteOrganization: {
    summary: 'Delete an organization',
    description: 'Its members and API keys go with it. Its namespaces must be deleted first.',
    answer: model.Done,
    errors: { ...organizationErrors, 409: 'It owns namespaces, or a fixture brought it' },
  },
  putMember: {
    summary: 'Make a user a member, or change the role',
    description: 'Owners and admins; only owners make and change owners.',
    body: model.MemberWrite,
    example: { role: 'admin' },
    answer: model.Member,
    errors: { ...organizationErrors, 409: 'The last owner stays, or a fixture brought the organization' },
  },
  deleteMember: {
    summary: 'Remove a member',
    description: 'Owners and admins; only owners remove owners. A member may leave.',
    answer: model.Done,
    errors: { ...organizationErrors, 409: 'The last owner stays, or a fixture brought the organization' },
  },
  createApiKey: {
    summary: 'Make an API key of an organization',
    description: 'It acts for the organization, and is shown once. Owners and admins.',
    body: model.ApiKeyWrite,
    example: { name: 'ci' },
    made: model.ApiKeyMade,
    errors: keyErrors,
  },
  listApiKeys: {
    summary: 'List the API keys of an organization',
    description: 'Those that are not revoked, oldest first, without the keys themselves.',
    answer: model.ApiKeyList,
    errors: keyErrors,
  },
  deleteApiKey: {
    summary: 'Revoke an API key of an organization',
    description: 'With all tokens that were minted with it.',
    answer: model.Done,
    errors: { ...keyErrors, 404: 'API key not found' },
  },
  createOwnApiKey: {
    summary: 'Create your own API key',
    description: 'It acts for you, never as an operator, and is shown once.',
    body: model.ApiKeyWrite,
    example: { name: 'laptop' },
    made: model.ApiKeyMade,
    errors: ownErrors,
  },
  listOwnApiKeys: {
    summary: 'List your API keys',
    description: 'Those that are not revoked, oldest first, without the keys themselves.',
    answer: model.ApiKeyList,
    errors: ownErrors,
  },
  deleteOwnApiKey: {
    summary: 'Revoke one of your API keys',
    description: 'With all tokens that were minted with it, and all grants of its sessions.',
    answer: model.Done,
    errors: { ...ownErrors, 404: 'API key not found' },
  },
  createAnyApiKey: {
    summary: 'Make an API key for somebody',
    description: 'Operators only. With `operator`, the key may access everything. It is shown once.',
    body: model.AnyApiKeyWrite,
    example: { userId: 'bob', name: 'laptop' },
    made: model.ApiKeyMade,
    errors: operatorErrors,
  },
  listAllApiKeys: {
    summary: 'List everybody’s API keys',
    description: 'Operators only. All keys, oldest first, those of organizations and revoked ones included.',
    parameters: [...pages, ofUser],
    answer: model.ApiKeyPage,
    errors: operatorErrors,
  },
  deleteAnyApiKey: {
    summary: 'Revoke anybody’s API key',
    description: 'Operators only. With all tokens that were minted with it, and all grants of its sessions.',
    answer: model.Done,
    errors: { ...operatorErrors, 404: 'API key not found' },
  },
  listOwnGrants: {
    summary: 'List what you have allowed clients',
    description: 'Your grants, oldest first: which client may use which connection, with which tools, until when.',
    parameters: pages,
    answer: model.GrantPage,
    errors: ownErrors,
  },
  deleteOwnGrant: {
    summary: 'End one of your grants',
    description: 'The client’s tokens are refused at once. You may allow it again.',
    answer: model.Done,
    errors: { ...ownErrors, 404: 'Grant not found' },
  },
  listAllGrants: {
    summary: 'List everybody’s grants',
    description: 'Operators only. Oldest first.',
    parameters: [...pages, ofUser],
    answer: model.GrantPage,
    errors: operatorErrors,
  },
  deleteAnyGrant: {
    summary: 'End anybody’s grant',
    description: 'Operators only. The client’s tokens are refused at once.',
    answer: model.Done,
    errors: { ...operatorErrors, 404: 'Grant not found' },
  },
}
