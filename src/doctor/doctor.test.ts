import assert from 'node:assert/strict';
import { test } from 'node:test';
import { examine } from '#doctor/doctor.ts';
import { examinationText, isHealthy } from '#doctor/finding.ts';
import type { ExaminedMachine, MachineFile } from '#doctor/machine.ts';
import { isOlder, PROGRAMS } from '#doctor/programs.ts';

interface MadeUp {
  readonly without?: readonly string[];
  readonly programs?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, MachineFile>>;
  readonly texts?: Readonly<Record<string, string>>;
  /** Programs that exist but do not run. */
  readonly broken?: string;
  readonly isRoot?: boolean;
  readonly nodeVersion?: string;
  readonly freeBytes?: number | undefined;
  readonly taken?: boolean;
  readonly alive?: readonly number[];
}

const DIRECTORY: MachineFile = { isDirectory: true, isWritable: true };
const FILE: MachineFile = { isDirectory: false, isWritable: true };
const LOCKED: MachineFile = { isDirectory: false, isWritable: false };
const OVMF = '/usr/share/OVMF';
const ALL_FILES: Readonly<Record<string, MachineFile>> = {
  '/': DIRECTORY,
  '/data': DIRECTORY,
  '/dev/kvm': FILE,
  '/dev/loop-control': FILE,
  '/dev/net/tun': FILE,
  '/usr/lib/cni/bridge': FILE,
  '/usr/lib/cni/static': FILE,
  '/proc/sys/net/ipv6': DIRECTORY,
  '/guest/vmlinuz': FILE,
  '/guest/initrd.gz': FILE,
  [`${OVMF}/OVMF_CODE_4M.fd`]: FILE,
  [`${OVMF}/OVMF_VARS_4M.fd`]: FILE,
  [`${OVMF}/OVMF_CODE_4M.secboot.fd`]: FILE,
  [`${OVMF}/OVMF_VARS_4M.ms.fd`]: FILE,
};
const PLACE = { dataDir: '/data', host: '127.0.0.1', port: 6443, guestDir: '/guest' };

/** A machine with everything, except for the overrides of a case. */
function machine({ without = [], programs = {}, files = {}, texts = {}, ...more }: MadeUp): ExaminedMachine {
  const there = { ...ALL_FILES, ...files };
  const contents: Readonly<Record<string, string>> = { '/proc/cpuinfo': 'flags\t\t: fpu svm sse\n', ...texts };
  return {
    isRoot: more.isRoot ?? true,
    nodeVersion: more.nodeVersion ?? 'v24.1.0',
    run: async (program, args) => {
      if (without.includes(program)) return undefined;
      const words = [program, ...args].join(' ');
      const text = words === 'nft -j list chains' ? NO_CHAINS : `${program} version 9.1.2\n`;
      return { text: programs[words] ?? programs[program] ?? text, works: more.broken !== program };
    },
    file: async (path) => (without.includes(path) ? undefined : there[path]),
    text: async (path) => contents[path] ?? '',
    freeBytes: async () => ('freeBytes' in more ? more.freeBytes : 50 * 1024 ** 3),
    isTaken: async () => more.taken ?? false,
    isAlive: (pid) => (more.alive ?? []).includes(pid),
  };
}

const NO_CHAINS = JSON.stringify({ nftables: [{ metainfo: {} }] });
const chainsOf = (...chains: object[]) => JSON.stringify({ nftables: chains.map((chain) => ({ chain })) });
const FORWARD = { family: 'ip', table: 'filter', name: 'FORWARD', hook: 'forward', policy: 'drop' };

const cases: Record<string, { of: MadeUp; what: string; state: string; message: RegExp; fix?: RegExp }> = {
  'no QEMU': {
    of: { without: ['qemu-system-x86_64'] },
    what: 'QEMU',
    state: 'missing',
    message: /no guest can start/,
    fix: /qemu-system-x86$/,
  },
  'an old QEMU': {
    of: { programs: { 'qemu-system-x86_64': 'QEMU emulator version 6.2.0 (Debian)' } },
    what: 'QEMU',
    state: 'limited',
    message: /^6\.2\.0; tested with 7\.2 and later$/,
  },
  'a QEMU that reports no version': {
    of: { programs: { 'qemu-system-x86_64': '?' } },
    what: 'QEMU',
    state: 'works',
    message: /^qemu-system-x86_64$/,
  },
  'no runc': { of: { without: ['runc'] }, what: 'runc', state: 'missing', message: /no guest can start/, fix: /runc$/ },
  'no root for sandboxes': { of: { isRoot: false }, what: 'sandboxes', state: 'limited', message: /reach all others/ },
  'no swtpm': { of: { without: ['swtpm'] }, what: 'swtpm', state: 'limited', message: /TPM/, fix: /swtpm$/ },
  'a swtpm that does not run': {
    of: { broken: 'swtpm', programs: { swtpm: '\nswtpm: error while loading shared libraries: libtpms.so.0\n' } },
    what: 'swtpm',
    state: 'limited',
    message: /^swtpm does not run \(swtpm: error while loading.*libtpms\.so\.0\): VMs with a TPM/,
    fix: /--reinstall$/,
  },
  'no ssh': { of: { without: ['ssh'] }, what: 'ssh', state: 'limited', message: /virtctl ssh/, fix: /openssh-client$/ },
  'another Node.js version': {
    of: { nodeVersion: 'v20.19.2' },
    what: 'Node.js',
    state: 'missing',
    message: /v20\.19\.2; expected 24/,
    fix: /setup\.sh/,
  },
  'a processor without virtualization': {
    of: { texts: { '/proc/cpuinfo': 'flags : fpu\n' } },
    what: 'KVM',
    state: 'limited',
    message: /emulated/,
    fix: /firmware/,
  },
  'no /dev/kvm': {
    of: { without: ['/dev/kvm'] },
    what: 'KVM',
    state: 'limited',
    message: /\/dev\/kvm does not exist/,
    fix: /modprobe/,
  },
  'a /dev/kvm without permission': {
    of: { files: { '/dev/kvm': LOCKED } },
    what: 'KVM',
    state: 'limited',
    message: /no permission to open/,
  },
  'a working /dev/kvm': { of: {}, what: 'KVM', state: 'works', message: /^\/dev\/kvm$/ },
  'firmware without secure boot': {
    of: { without: [`${OVMF}/OVMF_CODE_4M.secboot.fd`] },
    what: 'UEFI firmware',
    state: 'limited',
    message: /^OVMF_CODE_4M\.secboot\.fd not in/,
    fix: /ovmf$/,
  },
  'no loop devices': {
    of: { without: ['/dev/loop-control'] },
    what: 'loop devices',
    state: 'limited',
    message: /local-block/,
    fix: /modprobe loop/,
  },
  'loop devices that may not be used': {
    of: { files: { '/dev/loop-control': LOCKED } },
    what: 'loop devices',
    state: 'limited',
    message: /no permission to open.*local-block/,
    fix: /CAP_SYS_ADMIN/,
  },
  'loop devices without root': {
    of: { isRoot: false },
    what: 'loop devices',
    state: 'limited',
    message: /requires root/,
  },
  'no runc, which is not needed without root': {
    of: { without: ['runc'], isRoot: false },
    what: 'runc',
    state: 'limited',
    message: /if the server runs as root/,
  },
  'no ip': { of: { without: ['ip'] }, what: 'ip', state: 'missing', message: /network/, fix: /iproute2$/ },
  'no nft': { of: { without: ['nft'] }, what: 'nft', state: 'missing', message: /network/, fix: /nftables$/ },
  'no rules without nft': { of: { without: ['nft'] }, what: 'firewall', state: 'limited', message: /unknown/ },
  'no dnsmasq': {
    of: { without: ['dnsmasq'] },
    what: 'dnsmasq',
    state: 'missing',
    message: /--guest-subnets none/,
    fix: /dnsmasq-base$/,
  },
  'no taps': {
    of: { without: ['/dev/net/tun'] },
    what: 'guest network',
    state: 'missing',
    message: /cannot start; with --guest-subnets none/,
    fix: /modprobe tun/,
  },
  'taps that may not be used': {
    of: { files: { '/dev/net/tun': LOCKED } },
    what: 'guest network',
    state: 'missing',
    message: /no permission to open/,
    fix: /CAP_NET_ADMIN/,
  },
  'what works without root': {
    of: { isRoot: false },
    what: 'guest network',
    state: 'limited',
    message: /user-mode networking: they reach the outside and are reached by port-forward, but not each other/,
    fix: /run as root/,
  },
  'a missing plugin': {
    of: { without: ['/usr/lib/cni/static'] },
    what: 'CNI plugins',
    state: 'missing',
    message: /^static not in/,
    fix: /containernetworking-plugins$/,
  },
  'plugins elsewhere': {
    of: { without: ['/usr/lib/cni/bridge'], files: { '/opt/cni/bin/bridge': FILE } },
    what: 'CNI plugins',
    state: 'works',
    message: /^bridge and static in \/opt\/cni\/bin and \/usr\/lib\/cni$/,
  },
  'a kernel without IPv6': {
    of: { without: ['/proc/sys/net/ipv6'] },
    what: 'IPv6',
    state: 'limited',
    message: /IPv4 only/,
    fix: /--guest-subnets/,
  },
  'the policy of Docker': {
    of: {
      programs: {
        'nft -j list chains': chainsOf(FORWARD, { family: 'ip', table: 'filter', name: 'DOCKER-USER' }),
      },
    },
    what: 'firewall',
    state: 'limited',
    message: /^dropped by ip filter FORWARD unless/,
    fix: /^iptables -I DOCKER-USER -i BRIDGE -j ACCEPT; iptables -I DOCKER-USER -o BRIDGE/,
  },
  'the policy of another firewall': {
    of: { programs: { 'nft -j list chains': chainsOf({ ...FORWARD, family: 'inet', table: 'fw', name: 'fwd' }) } },
    what: 'firewall',
    state: 'limited',
    message: /^dropped by inet fw fwd/,
    fix: /^nft insert rule inet fw fwd iifname BRIDGE accept/,
  },
  'a policy with an exception': {
    of: {
      programs: {
        'nft -j list chains': chainsOf(FORWARD),
        'nft list table ip filter': 'chain FORWARD { iifname "ss-0123" accept }',
      },
    },
    what: 'firewall',
    state: 'works',
    message: /no other rules/,
  },
  'chains that are ours, bridges and open': {
    of: {
      programs: {
        'nft -j list chains': chainsOf(
          { ...FORWARD, table: 'selfsame_guard' },
          { ...FORWARD, family: 'bridge' },
          { ...FORWARD, policy: 'accept' },
        ),
      },
    },
    what: 'firewall',
    state: 'works',
    message: /no other rules/,
  },
  'an existing data directory': { of: {}, what: 'data directory', state: 'works', message: /^\/data$/ },
  'a data directory that does not exist yet': {
    of: { without: ['/data'] },
    what: 'data directory',
    state: 'works',
    message: /will be created/,
  },
  'a data directory in use': {
    of: { texts: { '/data/server.pid': '42\n' }, alive: [42] },
    what: 'data directory',
    state: 'works',
    message: /process 42$/,
  },
  'a data directory whose server was killed': {
    of: { texts: { '/data/server.pid': '42\n' } },
    what: 'data directory',
    state: 'works',
    message: /^\/data$/,
  },
  'a data directory of another user': {
    of: { files: { '/data': { isDirectory: true, isWritable: false } } },
    what: 'data directory',
    state: 'missing',
    message: /is not readable and writable/,
    fix: /--data-dir.*chown/,
  },
  'a file instead of a data directory': {
    of: { files: { '/data': FILE } },
    what: 'data directory',
    state: 'missing',
    message: /not a directory/,
    fix: /^choose another with --data-dir$/,
  },
  'little space': {
    of: { freeBytes: 200 * 1024 ** 2 },
    what: 'disk space',
    state: 'limited',
    message: /^200 MiB free.*pause/,
    fix: /--data-dir/,
  },
  'no space': {
    of: { freeBytes: 20 * 1024 ** 2 },
    what: 'disk space',
    state: 'missing',
    message: /^20 MiB free.*too little to start/,
    fix: /--data-dir/,
  },
  'space that cannot be determined': {
    of: { freeBytes: undefined },
    what: 'disk space',
    state: 'limited',
    message: /unknown/,
  },
  'a port that is free': { of: {}, what: 'port', state: 'works', message: /127\.0\.0\.1:6443 is free/ },
  'a port of another program': {
    of: { taken: true },
    what: 'port',
    state: 'limited',
    message: /another program/,
    fix: /--port 0.*:6443/,
  },
  'the port of the running plane': {
    of: {
      taken: true,
      texts: { '/data/kubeconfig': 'server: https://127.0.0.1:6443\n', '/data/server.pid': '42\n' },
      alive: [42],
    },
    what: 'port',
    state: 'works',
    message: /served by process 42/,
  },
  'no built-in guest': {
    of: { without: ['/guest/initrd.gz'] },
    what: 'built-in guest',
    state: 'limited',
    message: /not built/,
    fix: /setup\.sh/,
  },
};
for (const [title, { of, what, state, message, fix }] of Object.entries(cases)) {
  test(`finds ${title}`, async () => {
    const { findings } = await examine(machine(of), PLACE);
    const finding = findings.find((one) => one.what === what);
    assert.equal(finding?.state, state);
    assert.match(finding?.message ?? '', message);
    if (fix !== undefined) assert.match(finding?.fix ?? '', fix);
    if (state === 'works') assert.equal(finding?.fix, undefined);
  });
}

test('a machine with everything has no findings to fix', async () => {
  const examination = await examine(machine({}), PLACE);
  assert.deepEqual(
    examination.findings.filter(({ state }) => state !== 'works'),
    [],
  );
  assert.ok(isHealthy(examination));
  assert.match(
    examinationText(examination),
    new RegExp(`\\n${examination.findings.length} work: VMs can run here\\n$`),
  );
});

test('reports killed tours, and only those', async () => {
  const { findings } = await examine(machine({}), { ...PLACE, killedTours: ['/tmp/selfsame-tour-7-aB3xY9'] });
  const finding = findings.find(({ what }) => what === 'selfsame tour');
  assert.match(finding?.message ?? '', /selfsame-tour-7-aB3xY9$/);
  assert.equal(finding?.fix, 'selfsame tour --clear');
  assert.ok(isHealthy({ version: '', findings }));
  const without = await examine(machine({}), PLACE);
  assert.ok(!without.findings.some(({ what }) => what === 'selfsame tour'));
});

test('a machine without any requirement cannot run VMs', async () => {
  const without = PROGRAMS.map(({ file }) => file);
  const examination = await examine(machine({ without }), PLACE);
  assert.ok(!isHealthy(examination));
  assert.match(
    examinationText(examination),
    /missing {2}QEMU {12}qemu-system-x86_64 is not in.*\n {25}fix: apt-get install/,
  );
  assert.match(examinationText(examination), /6 missing: VMs cannot run here/);
});

test('compares versions by number', () => {
  assert.ok(isOlder('6.2.0', '7.2'));
  assert.ok(isOlder('7.1.9', '7.2'));
  assert.ok(!isOlder('7.2', '7.2'));
  assert.ok(!isOlder('10.0.2', '7.2'));
});
