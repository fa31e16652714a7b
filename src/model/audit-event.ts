/** The events of the audit log, with their fields in `docs/audit.md`. */

export const auditEvents = [
  ...([
    'token.minted',
    'token.refused',
    'token.revoked',
    'access.refused',
    'write.refused',
    'refusals.unwritten',
  ] as const),
  ...(['connection.created', 'connection.changed', 'connection.deleted', 'pin.changed', 'pin.accepted'] as const),
  ...(['upstream.signed_in', 'upstream.signed_out'] as const),
  ...(['signin.session', 'signin.link_created', 'signin.ended', 'signin.cli', 'signin.cli.denied'] as const),
  ...(['grant.created', 'grant.ended', 'key.created', 'key.revoked'] as const),
  ...(['signing-key.rotated', 'signing-key.revoked'] as const),
  ...(['namespace.created', 'namespace.changed', 'namespace.deleted'] as const),
  ...(['view.created', 'view.changed', 'view.deleted'] as const),
  ...(['registry-link.created', 'registry-link.deleted'] as const),
  ...(['organization.created', 'organization.changed', 'organization.deleted'] as const),
  ...(['member.changed', 'member.removed'] as const),
  ...(['server.created', 'server.changed', 'server.introspected', 'server.deleted', 'servers.imported'] as const),
  ...(['fixtures.loaded', 'log.continued', 'log.failed', 'backup.made', 'backup.restored'] as const),
  ...(['data.exported', 'data.imported', 'index.rebuilt', 'store.copied', 'store.migrated'] as const),
] as const
export type AuditEvent = (typeof auditEvents)[number]
