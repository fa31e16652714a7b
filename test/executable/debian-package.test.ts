/**
 * The Debian package with the executable: installed, started, upgraded, removed and purged by dpkg under a systemd of
 * its own, over the machine's files and without a change to them.
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

/** Starts systemd over the machine's own files, in namespaces of its own, until the trial has ended. `$1`: the folder of both. */
const machineOfItsOwn = `
# The tests of this process may have opened data folders, which hides new files from others, / of this machine too.
umask 022
mount -t tmpfs tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work overlay /mnt/root
mkdir /mnt/root/out /mnt/root/before
mount --bind "$1" /mnt/root/out
cd /mnt/root
cp out/trial.service etc/systemd/system/
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for empty in run tmp dev; do mount -t tmpfs tmpfs $empty; done
for device in null zero full random urandom; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/shm dev/pts
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
touch dev/console
mount --bind out/console dev/console
pivot_root . before
cd /
umount -l /before
exec env -i container=lxc /lib/systemd/systemd --system --unit=trial.service`

const trialService = `[Unit]
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
WorkingDirectory=/
ExecStart=/bin/bash -e /out/trial.sh
StandardOutput=file:/out/told
StandardError=file:/out/errors
`

const trial = `
answers() { until postern health http://127.0.0.1:$1 2>/dev/null; do sleep 0.1; done; }
pid() { systemctl show -p MainPID --value postern; }
dpkg -i /out/0.1.0.deb >&2
stat -c '%n %a %U %G' /var/lib/postern /etc/postern/environment /usr/bin/postern
answers 8787
first=$(pid)
kill -9 $first
until [ "$(pid)" != $first ] && [ "$(pid)" != 0 ]; do sleep 0.1; done
answers 8787
echo POSTERN_PORT=9999 >>/etc/postern/environment
mkdir /etc/systemd/system/postern.service.d
printf '[Service]\\nUser=somebody-else\\n' >/etc/systemd/system/postern.service.d/wrong.conf
dpkg -i /out/0.2.0.deb 2>&1 >/dev/null | tail -n 1
rm /etc/systemd/system/postern.service.d/wrong.conf
systemctl daemon-reload
systemctl restart postern
answers 9999
runuser -u postern -- env POSTERN_DATA=/var/lib/postern postern keys list | tail -n +2 | wc -l
dpkg -r postern >&2
systemctl is-active postern || true
ls /var/lib/postern/store /etc/postern
dpkg -P postern >&2
ls -d /var/lib/postern /etc/postern /usr/bin/postern /lib/systemd/system/postern.service 2>&1 | grep -c 'No such file'
`

test.if(isHere('root that may start systemd'))(
  'dpkg installs, upgrades, removes and purges it, and systemd runs it; what an operator wrote stays until then (needs root that may start systemd)',
  () => {
    using place = workplace()
    for (const version of ['0.1.0', '0.2.0']) packed(place.folder, version)
    const files = { 'trial.service': trialService, 'trial.sh': trial, console: '', told: '', errors: '' }
    for (const [name, text] of Object.entries(files)) writeFileSync(join(place.folder, name), text)
    const namespaces = ['--mount', '--pid', '--net', '--cgroup', '--ipc', '--uts', '--fork', '--kill-child']
    const ran = Bun.spawnSync(['unshare', ...namespaces, 'bash', '-ec', machineOfItsOwn, 'bash', place.folder])
    const told = (name: string) => readFileSync(join(place.folder, name), 'utf8')
    const errors = `${ran.stderr}${told('errors')}`
    expect({ code: ran.exitCode, errors, told: told('told').trim().split('\n') }).toEqual({
      code: 0,
      errors: expect.any(String),
      told: [
        '/var/lib/postern 700 postern postern',
        '/etc/postern/environment 640 root postern',
        '/usr/bin/postern 755 root root',
        ...['http://127.0.0.1:8787 answers', 'http://127.0.0.1:8787 answers'],
        'postern is installed, but does not start: see systemctl status postern',
        'http://127.0.0.1:9999 answers',
        ...['1', 'inactive'],
        ...['/etc/postern:', 'environment', '', '/var/lib/postern/store:', 'data.mdb', 'lock.mdb', 'opening.lock'],
        '4',
      ],
    })
  },
)
