/** The OpenAPI words for the operations of the directory: `/me`, namespaces, organizations and their keys. */

import { listPageMax, namespacesPageMax } from '../../limits.ts'
import * as model from '../../model/organization.ts'
import { RegistryLinkList, RegistryLinkMade, RegistryLinkWrite } from '../../model/registry.ts'
import { ViewDeleted, ViewDetail, ViewList, ViewWrite } from '../../model/view.ts'
import type { OperationId } from '../../operations.ts'
import { flag, pages, query, type Words } from './operation-words.ts'

const unmanaged = { 403: 'The token does not allow this, or the caller does not manage the namespace' }
const unallowed = { 403: 'The token does not allow this' }
const noView = { 404: 'There is no such namespace or view, or it is hidden from the caller' }
const noNamespace = { 404: 'Namespace not found' }
const viewErrors = { ...unmanaged, ...noView }
const namespaceErrors = { ...unmanaged, ...noNamespace }
const organizationErrors = {
  403: 'The caller sent a token or an organization’s own key, or the caller’s role does not allow this',
  404: 'Organization not found, or the caller is not a member of it',
}
const keyErrors = {
  403: 'The caller sent a token, or is not an owner or admin of an organization with this id',
}
const ownErrors = { 403: 'The caller sent a token or an organization’s own key' }
const operatorErrors = { 403: 'The caller is not an operator with an API key' }
const itemPages = pages('Items', listPageMax)
const ofUser = query('userId', 'Only items of this user')
const ofFixture = 'A fixture defines it: change it in the fixture'

export const organizationWords: Readonly<Partial<Record<OperationId, Words>>> = {
  getMe: {
    summary: 'Who am I?',
    description:
      'Shows the caller, its key or token, its organizations, and the first 100 namespaces that it may access, with what it may do in each (`servers:read`, …).',
    answer: model.Me,
  },
  listNamespaces: {
    summary: 'List namespaces',
    description: 'Lists the namespaces that the caller may access and that its policy allows, sorted by name.',
    parameters: [
      ...pages('Namespaces', namespacesPageMax),
      query('q', 'The beginning of the name'),
      query('ownerId', 'The user or organization that owns the namespace'),
      query('hasServers', 'Whether the namespace has servers', flag),
      query('hasSkills', 'Whether the namespace has skills; `true` finds nothing', flag),
      query('fields', 'The fields to show, separated by commas'),
    ],
    answer: model.NamespacePage,
    errors: { 403: 'The token does not allow this' },
  },
  createNamespace: {
    summary: 'Create a namespace with a generated name',
    description: 'Only for a caller that owns no namespace yet.',
    made: model.NamespaceMade,
    errors: {
      400: 'The caller owns a namespace already, or the request cannot be read',
      403: 'The token does not allow this',
    },
  },
  getNamespace: {
    summary: 'Read a namespace',
    description:
      '`title`, `description` and `instructions` are those of the endpoint of the namespace; `registry` says who may read the registry of the namespace.',
    answer: model.NamespaceDetail,
    errors: { ...unallowed, ...noNamespace },
  },
  putNamespace: {
    summary: 'Create a namespace',
    description:
      'The namespace belongs to the caller, or to the organization that the caller acts for or names. If the caller already manages a namespace of this name, postern answers with it, unchanged.',
    body: model.NamespaceWrite,
    example: { organizationId: 'org_acme' },
    made: model.NamespaceMade,
    errors: {
      ...namespaceErrors,
      403: 'The token does not allow this, the caller does not manage the namespace or organization, or the owner already has as many namespaces as it may own',
      409: 'The name is taken (upper and lower case count as equal), or the namespace is being deleted',
    },
  },
  changeNamespace: {
    summary: 'Change a namespace',
    description:
      '`pins` says what happens when a server lists a definition that nobody has accepted: nothing (`off`), a line in the audit log (`warn`), or that line and the tool is hidden (`block`).',
    body: model.NamespaceChange,
    example: { pins: 'block' },
    answer: model.NamespaceDetail,
    errors: { ...namespaceErrors, 409: ofFixture },
  },
  deleteNamespace: {
    summary: 'Delete a namespace with its connections',
    description:
      'Nobody can access the namespace from then on. Its name is free once its connections are gone, which may be after the answer. ' +
      'Its servers must be deleted first.',
    answer: model.NamespaceDeleted,
    errors: { ...namespaceErrors, 409: 'The namespace has servers, or a fixture defines it' },
  },
  listViews: {
    summary: 'List the views of a namespace',
    description: 'A view is a selection of a namespace, with its URL: `/connect/{namespace}/mcp/{view}`.',
    answer: ViewList,
    errors: { ...unallowed, ...noNamespace },
  },
  getView: {
    summary: 'Read a view',
    description: 'Shows the view with its URL.',
    answer: ViewDetail,
    errors: { ...unallowed, ...noView },
  },
  putView: {
    summary: 'Write a view',
    description:
      'Replaces the whole view. Its policy narrows what every caller may do at its URL, as if the caller had minted a token with this policy. The change is in force from the next request on.',
    body: ViewWrite,
    example: { policy: [{ metadata: { team: 'sales' } }], title: 'Sales' },
    answer: ViewDetail,
    made: ViewDetail,
    errors: {
      ...viewErrors,
      403: 'The token does not allow this, the caller does not manage the namespace, or it has 100 views',
      409: ofFixture,
    },
  },
  deleteView: {
    summary: 'Delete a view',
    description: 'Nobody can use its URL from then on.',
    answer: ViewDeleted,
    errors: { ...viewErrors, 409: ofFixture },
  },
  listRegistryLinks: {
    summary: 'List the links to the registry of a namespace',
    description: 'Shows no secrets.',
    answer: RegistryLinkList,
    errors: namespaceErrors,
  },
  createRegistryLink: {
    summary: 'Create a link to the registry of a namespace',
    description: 'For editors that cannot send a credential. Only this answer has the URL with its secret.',
    body: RegistryLinkWrite,
    example: { name: 'VS Code' },
    made: RegistryLinkMade,
    errors: {
      ...namespaceErrors,
      403: 'The token does not allow this, the caller does not manage the namespace, or it has 100 links',
    },
  },
  deleteRegistryLink: {
    summary: 'Revoke a link to the registry of a namespace',
    description: 'Nobody can read the registry through it from then on.',
    answer: model.Done,
    errors: { ...namespaceErrors, 404: 'There is no such link, or the namespace is hidden from the caller' },
  },
  getOrganization: {
    summary: 'Read an organization',
    description: 'Shows the organization with its members. The caller must send an API key of a person.',
    answer: model.OrganizationDetail,
    errors: organizationErrors,
  },
  putOrganization: {
    summary: 'Create an organization, or rename it',
    description: 'Operators only. The user in `owner` becomes an owner of the organization.',
    body: model.OrganizationWrite,
    example: { name: 'Acme', owner: 'ada' },
    answer: model.OrganizationDetail,
    made: model.OrganizationDetail,
    errors: { ...organizationErrors, 409: ofFixture },
  },
  deleteOrganization: {
    summary: 'Delete an organization',
    description: 'Also deletes the organization’s members and API keys. Delete its namespaces first.',
    answer: model.Done,
    errors: { ...organizationErrors, 409: 'The organization owns namespaces, or a fixture defines it' },
  },
  putMember: {
    summary: 'Add a member, or change a member’s role',
    description: 'Owners and admins may do this. Only owners may make somebody an owner, or change an owner’s role.',
    body: model.MemberWrite,
    example: { role: 'admin' },
    answer: model.Member,
    errors: { ...organizationErrors, 409: 'The organization must keep an owner, or a fixture defines it' },
  },
  deleteMember: {
    summary: 'Remove a member',
    description: 'Owners and admins may do this. Only owners may remove owners. Every member may leave.',
    answer: model.Done,
    errors: { ...organizationErrors, 409: 'The organization must keep an owner, or a fixture defines it' },
  },
  createApiKey: {
    summary: 'Create an API key for an organization',
    description: 'Owners and admins may do this. The key acts for the organization, and postern shows it only once.',
    body: model.ApiKeyWrite,
    example: { name: 'ci' },
    made: model.ApiKeyMade,
    errors: keyErrors,
  },
  listApiKeys: {
    summary: 'List the API keys of an organization',
    description: 'Shows the id, name and creation time of each key that is not revoked, oldest first.',
    answer: model.ApiKeyList,
    errors: keyErrors,
  },
  deleteApiKey: {
    summary: 'Revoke an API key of an organization',
    description: 'Also revokes all tokens that were minted with the key.',
    answer: model.Done,
    errors: { ...keyErrors, 404: 'API key not found' },
  },
  createOwnApiKey: {
    summary: 'Create your own API key',
    description: 'The key acts for you, never as an operator. postern shows it only once.',
    body: model.ApiKeyWrite,
    example: { name: 'laptop' },
    made: model.ApiKeyMade,
    errors: ownErrors,
  },
  listOwnApiKeys: {
    summary: 'List your API keys',
    description: 'Shows the id, name and creation time of each key that is not revoked, oldest first.',
    answer: model.ApiKeyList,
    errors: ownErrors,
  },
  deleteOwnApiKey: {
    summary: 'Revoke one of your API keys',
    description: 'Also revokes all tokens minted with the key, and ends all grants that its browser sessions gave.',
    answer: model.Done,
    errors: { ...ownErrors, 404: 'API key not found' },
  },
  createAnyApiKey: {
    summary: 'Create an API key for somebody',
    description: 'Operators only. With `operator`, the key may access everything. postern shows the key only once.',
    body: model.AnyApiKeyWrite,
    example: { userId: 'bob', name: 'laptop' },
    made: model.ApiKeyMade,
    errors: operatorErrors,
  },
  listAllApiKeys: {
    summary: 'List everybody’s API keys',
    description: 'Operators only. Lists all keys, oldest first, including revoked keys and keys of organizations.',
    parameters: [...itemPages, ofUser],
    answer: model.ApiKeyPage,
    errors: operatorErrors,
  },
  deleteAnyApiKey: {
    summary: 'Revoke anybody’s API key',
    description:
      'Operators only. Also revokes all tokens minted with the key, and ends all grants that its browser sessions gave.',
    answer: model.Done,
    errors: { ...operatorErrors, 404: 'API key not found' },
  },
  listOwnGrants: {
    summary: 'List the access that you gave to clients',
    description: 'Your grants, oldest first: which client may use which connection, with which tools, until when.',
    parameters: itemPages,
    answer: model.GrantPage,
    errors: ownErrors,
  },
  deleteOwnGrant: {
    summary: 'Revoke one of your grants',
    description: 'postern refuses the client’s tokens at once. You may allow the client again.',
    answer: model.Done,
    errors: { ...ownErrors, 404: 'Grant not found' },
  },
  listAllGrants: {
    summary: 'List everybody’s grants',
    description: 'Operators only. Oldest first.',
    parameters: [...itemPages, ofUser],
    answer: model.GrantPage,
    errors: operatorErrors,
  },
  deleteAnyGrant: {
    summary: 'Revoke anybody’s grant',
    description: 'Operators only. The client’s tokens are refused at once.',
    answer: model.Done,
    errors: { ...operatorErrors, 404: 'Grant not found' },
  },
}
