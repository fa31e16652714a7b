/** A Debian package: the executable, the unit with its user and its folder, and its configuration. */

import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { version } from '../version.ts'

/** By target: the name that Debian has for the machine. */
export const debianMachines: Readonly<Record<string, string>> = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' }

interface Content {
  readonly executable: string
  /** The folder `deploy` of the repository. */
  readonly deploy: string
  /** Completions, by the name of the shell. */
  readonly completions: Readonly<Record<'bash' | 'zsh' | 'fish', string>>
  readonly papers: readonly string[]
}

/** Makes the tree that `dpkg-deb --build --root-owner-group` packs, which is everybody's to read. */
export function debianTree(folder: string, machine: string, content: Content): void {
  const before = process.umask(0o022)
  try {
    writeTree(folder, machine, content)
  } finally {
    process.umask(before)
  }
}

function writeTree(folder: string, machine: string, { executable, deploy, completions, papers }: Content): void {
  const put = (path: string, text: string, mode = 0o644) => {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text, { mode })
    chmodSync(join(folder, path), mode)
  }
  const unit = readFileSync(join(deploy, 'postern.service'), 'utf8')
  mkdirSync(join(folder, 'usr/bin'), { recursive: true })
  cpSync(executable, join(folder, 'usr/bin/postern'))
  chmodSync(join(folder, 'usr/bin/postern'), 0o755)
  put('lib/systemd/system/postern.service', unit.replace('/usr/local/bin/postern', '/usr/bin/postern'))
  put('usr/lib/sysusers.d/postern.conf', readFileSync(join(deploy, 'postern.sysusers'), 'utf8'))
  put('etc/postern/environment', environment, 0o640)
  put('usr/share/bash-completion/completions/postern', completions.bash)
  put('usr/share/zsh/vendor-completions/_postern', completions.zsh)
  put('usr/share/fish/vendor_completions.d/postern.fish', completions.fish)
  for (const paper of papers) put(`usr/share/doc/postern/${basename(paper)}`, readFileSync(paper, 'utf8'))
  put('DEBIAN/conffiles', '/etc/postern/environment\n')
  put('DEBIAN/control', control(machine))
  put('DEBIAN/postinst', afterInstallation, 0o755)
  put('DEBIAN/prerm', beforeRemoval, 0o755)
  put('DEBIAN/postrm', afterRemoval, 0o755)
}

const control = (machine: string) => `Package: postern
Version: ${version}
Architecture: ${machine}
Maintainer: postern <postern@localhost>
Section: net
Priority: optional
Depends: libc6 (>= 2.36), libgcc-s1, libstdc++6, adduser
Description: MCP gateway in one executable
 Registers MCP servers, keeps connections to them, and calls them for people and
 agents under narrow, short-lived tokens, with a record of each call.
`

const environment = `# Settings of postern, one in a line; \`postern serve --help\` lists them with their variables.
# POSTERN_BASE_URL=https://mcp.example.com
# POSTERN_TRUSTED_PROXY=127.0.0.1
# The first operator key. Without it, the first start prints one, and the journal keeps it.
# POSTERN_API_KEY=
`

/** Of a machine whose init is not systemd, the package starts nothing. */
const isSystemd = '[ -d /run/systemd/system ]'

const afterInstallation = `#!/bin/sh
set -e
if [ "$1" = configure ]; then
  getent passwd postern >/dev/null || adduser --quiet --system --group --no-create-home --home /var/lib/postern postern
  install -d -m 700 -o postern -g postern /var/lib/postern
  if [ -e /etc/postern/environment ]; then chgrp postern /etc/postern/environment; fi
  if ${isSystemd}; then
    systemctl daemon-reload
    if [ -z "$2" ]; then systemctl enable postern; fi
    systemctl restart postern || echo 'postern is installed, but does not start: see systemctl status postern' >&2
  fi
fi
`

const beforeRemoval = `#!/bin/sh
set -e
if [ "$1" = remove ] && ${isSystemd}; then systemctl disable --now postern; fi
`

const afterRemoval = `#!/bin/sh
set -e
if [ "$1" = purge ]; then rm -rf /var/lib/postern /etc/postern; fi
if ${isSystemd}; then systemctl daemon-reload; fi
`
