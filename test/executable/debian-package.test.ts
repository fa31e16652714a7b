/**
 * The Debian package with the executable: installed, started, upgraded, removed and purged by dpkg, over the machine's
 * own files and without a change to them. A program stands for systemctl and notes what it is asked.
 */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { debianTree } from '../../src/tools/debian-package.ts'
import { executable, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'

const root = resolve(import.meta.dir, '../..')
const machine = process.arch === 'arm64' ? 'arm64' : 'amd64'

/** Packs without compression, which would take longest. */
function packed(folder: string, version: string): string {
  const tree = join(folder, version)
  const completions = { bash: 'b', zsh: 'z', fish: 'f' }
  debianTree(tree, machine, { executable, deploy: join(root, 'deploy'), completions, papers: [join(root, 'LICENSE')] })
  const control = join(tree, 'DEBIAN/control')
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*/m, `Version: ${version}`))
  const file = join(folder, `${version}.deb`)
  const made = Bun.spawnSync(['dpkg-deb', '-Znone', '--root-owner-group', '--build', tree, file])
  expect(made.exitCode).toBe(0)
  return file
}

const script = `
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
cp "$1" /mnt/first.deb
cp "$2" /mnt/second.deb
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
mount -t proc proc /mnt/root/proc
mount --bind /dev /mnt/root/dev
mkdir -p /mnt/root/run/systemd/system
mv /mnt/*.deb /mnt/root/
printf '#!/bin/sh\necho "systemctl $*" >>/asked\n' >/mnt/root/usr/local/bin/systemctl
chmod 755 /mnt/root/usr/local/bin/systemctl
in_root() { chroot /mnt/root env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
as_unit() { in_root runuser -u postern -- env POSTERN_DATA=/var/lib/postern /usr/bin/postern "$@"; }
in_root dpkg -i /first.deb >&2
in_root stat -c '%n %a %U %G' /var/lib/postern /etc/postern/environment /usr/bin/postern
mkfifo /mnt/told
as_unit serve --port 0 >/mnt/told 2>/dev/null &
while read -r _ _ said url; do [ "$said" = on ] && break; done </mnt/told
as_unit health "$url" | sed "s#$url#postern#"
in_root pkill -x postern
wait
echo 'POSTERN_PORT=9999' >>/mnt/root/etc/postern/environment
in_root dpkg -i /second.deb >&2
in_root tail -n 1 /etc/postern/environment
as_unit keys list | tail -n +2 | wc -l
in_root dpkg -r postern >&2
in_root ls /var/lib/postern/store /etc/postern
in_root dpkg -P postern >&2
in_root sh -c 'ls -d /var/lib/postern /etc/postern /usr/bin/postern 2>&1 | grep -c "No such file"'
cat /mnt/root/asked`

test.if(isHere('root that may overlay'))(
  'dpkg installs, upgrades, removes and purges it; what an operator wrote stays until then (needs root that may overlay)',
  () => {
    using place = workplace()
    const files = [packed(place.folder, '0.1.0'), packed(place.folder, '0.2.0')]
    const ran = Bun.spawnSync(['unshare', '-mp', '-f', 'bash', '-ec', script, 'bash', ...files])
    expect({ code: ran.exitCode, stderr: ran.stderr.toString() }).toMatchObject({ code: 0 })
    expect(ran.stdout.toString().trim().split('\n')).toEqual([
      '/var/lib/postern 700 postern postern',
      '/etc/postern/environment 640 root postern',
      '/usr/bin/postern 755 root root',
      'postern answers',
      'POSTERN_PORT=9999',
      '1',
      ...['/etc/postern:', 'environment', '', '/var/lib/postern/store:', 'data.mdb', 'lock.mdb', 'opening.lock'],
      '3',
      ...['systemctl daemon-reload', 'systemctl enable postern', 'systemctl restart postern'],
      // The first of these by the version before it.
      ...['systemctl daemon-reload', 'systemctl daemon-reload', 'systemctl restart postern'],
      ...['systemctl disable --now postern', 'systemctl daemon-reload', 'systemctl daemon-reload'],
    ])
  },
)
