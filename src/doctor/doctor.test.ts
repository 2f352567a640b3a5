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
    run: async (program) =>
      without.includes(program)
        ? undefined
        : { text: programs[program] ?? `${program} version 9.1.2\n`, works: more.broken !== program },
    file: async (path) => (without.includes(path) ? undefined : there[path]),
    text: async (path) => contents[path] ?? '',
    freeBytes: async () => ('freeBytes' in more ? more.freeBytes : 50 * 1024 ** 3),
    isTaken: async () => more.taken ?? false,
    isAlive: (pid) => (more.alive ?? []).includes(pid),
  };
}

const cases: Record<string, { of: MadeUp; what: string; state: string; says: RegExp; mend?: RegExp }> = {
  'no QEMU': {
    of: { without: ['qemu-system-x86_64'] },
    what: 'QEMU',
    state: 'missing',
    says: /no guest can start/,
    mend: /qemu-system-x86$/,
  },
  'an old QEMU': {
    of: { programs: { 'qemu-system-x86_64': 'QEMU emulator version 6.2.0 (Debian)' } },
    what: 'QEMU',
    state: 'limited',
    says: /^6\.2\.0; tested with 7\.2 and later$/,
  },
  'a QEMU that reports no version': {
    of: { programs: { 'qemu-system-x86_64': '?' } },
    what: 'QEMU',
    state: 'works',
    says: /^qemu-system-x86_64$/,
  },
  'no swtpm': { of: { without: ['swtpm'] }, what: 'swtpm', state: 'limited', says: /TPM/, mend: /swtpm$/ },
  'a swtpm that does not run': {
    of: { broken: 'swtpm', programs: { swtpm: '\nswtpm: error while loading shared libraries: libtpms.so.0\n' } },
    what: 'swtpm',
    state: 'limited',
    says: /^swtpm does not run \(swtpm: error while loading.*libtpms\.so\.0\): VMs with a TPM/,
    mend: /--reinstall$/,
  },
  'no ssh': { of: { without: ['ssh'] }, what: 'ssh', state: 'limited', says: /virtctl ssh/, mend: /openssh-client$/ },
  'another Node.js version': {
    of: { nodeVersion: 'v20.19.2' },
    what: 'Node.js',
    state: 'missing',
    says: /v20\.19\.2; expected 24/,
    mend: /setup\.sh/,
  },
  'a processor without virtualization': {
    of: { texts: { '/proc/cpuinfo': 'flags : fpu\n' } },
    what: 'KVM',
    state: 'limited',
    says: /emulated/,
    mend: /firmware/,
  },
  'no /dev/kvm': {
    of: { without: ['/dev/kvm'] },
    what: 'KVM',
    state: 'limited',
    says: /\/dev\/kvm does not exist/,
    mend: /modprobe/,
  },
  'a /dev/kvm without permission': {
    of: { files: { '/dev/kvm': LOCKED } },
    what: 'KVM',
    state: 'limited',
    says: /no permission to open/,
  },
  'a working /dev/kvm': { of: {}, what: 'KVM', state: 'works', says: /^\/dev\/kvm$/ },
  'firmware without secure boot': {
    of: { without: [`${OVMF}/OVMF_CODE_4M.secboot.fd`] },
    what: 'UEFI firmware',
    state: 'limited',
    says: /^OVMF_CODE_4M\.secboot\.fd not in/,
    mend: /ovmf$/,
  },
  'no loop devices': {
    of: { without: ['/dev/loop-control'] },
    what: 'loop devices',
    state: 'limited',
    says: /local-block/,
    mend: /modprobe loop/,
  },
  'loop devices that may not be used': {
    of: { files: { '/dev/loop-control': LOCKED } },
    what: 'loop devices',
    state: 'limited',
    says: /no permission to open.*local-block/,
    mend: /CAP_SYS_ADMIN/,
  },
  'loop devices without root': { of: { isRoot: false }, what: 'loop devices', state: 'limited', says: /requires root/ },
  'no taps': {
    of: { without: ['/dev/net/tun'] },
    what: 'bridges',
    state: 'limited',
    says: /masquerade/,
    mend: /modprobe tun/,
  },
  'an existing data directory': { of: {}, what: 'data directory', state: 'works', says: /^\/data$/ },
  'a data directory that does not exist yet': {
    of: { without: ['/data'] },
    what: 'data directory',
    state: 'works',
    says: /will be created/,
  },
  'a data directory in use': {
    of: { texts: { '/data/server.pid': '42\n' }, alive: [42] },
    what: 'data directory',
    state: 'works',
    says: /process 42$/,
  },
  'a data directory whose server was killed': {
    of: { texts: { '/data/server.pid': '42\n' } },
    what: 'data directory',
    state: 'works',
    says: /^\/data$/,
  },
  'a data directory of another user': {
    of: { files: { '/data': { isDirectory: true, isWritable: false } } },
    what: 'data directory',
    state: 'missing',
    says: /is not readable and writable/,
    mend: /--data-dir.*chown/,
  },
  'a file instead of a data directory': {
    of: { files: { '/data': FILE } },
    what: 'data directory',
    state: 'missing',
    says: /not a directory/,
    mend: /^choose another with --data-dir$/,
  },
  'little space': {
    of: { freeBytes: 200 * 1024 ** 2 },
    what: 'disk space',
    state: 'limited',
    says: /^200 MiB free.*pause/,
    mend: /--data-dir/,
  },
  'no space': {
    of: { freeBytes: 20 * 1024 ** 2 },
    what: 'disk space',
    state: 'missing',
    says: /^20 MiB free.*too little to start/,
    mend: /--data-dir/,
  },
  'space that cannot be determined': {
    of: { freeBytes: undefined },
    what: 'disk space',
    state: 'limited',
    says: /unknown/,
  },
  'a port that is free': { of: {}, what: 'port', state: 'works', says: /127\.0\.0\.1:6443 is free/ },
  'a port of another program': {
    of: { taken: true },
    what: 'port',
    state: 'limited',
    says: /another program/,
    mend: /--port 0.*:6443/,
  },
  'the port of the running plane': {
    of: {
      taken: true,
      texts: { '/data/kubeconfig': 'server: https://127.0.0.1:6443\n', '/data/server.pid': '42\n' },
      alive: [42],
    },
    what: 'port',
    state: 'works',
    says: /served by process 42/,
  },
  'no built-in guest': {
    of: { without: ['/guest/initrd.gz'] },
    what: 'built-in guest',
    state: 'limited',
    says: /not built/,
    mend: /setup\.sh/,
  },
};
for (const [title, { of, what, state, says, mend }] of Object.entries(cases)) {
  test(`finds ${title}`, async () => {
    const { findings } = await examine(machine(of), PLACE);
    const finding = findings.find((one) => one.what === what);
    assert.equal(finding?.state, state);
    assert.match(finding?.says ?? '', says);
    if (mend !== undefined) assert.match(finding?.mend ?? '', mend);
    if (state === 'works') assert.equal(finding?.mend, undefined);
  });
}

test('a machine with everything', async () => {
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
  assert.match(finding?.says ?? '', /selfsame-tour-7-aB3xY9$/);
  assert.equal(finding?.mend, 'selfsame tour --clear');
  assert.ok(isHealthy({ version: '', findings }));
  const without = await examine(machine({}), PLACE);
  assert.ok(!without.findings.some(({ what }) => what === 'selfsame tour'));
});

test('a machine with nothing', async () => {
  const without = PROGRAMS.map(({ file }) => file);
  const examination = await examine(machine({ without }), PLACE);
  assert.ok(!isHealthy(examination));
  assert.match(
    examinationText(examination),
    /missing {2}QEMU {14}qemu-system-x86_64 is not in.*\n {27}fix: apt-get install/,
  );
  assert.match(examinationText(examination), /2 missing: VMs cannot run here/);
});

test('compares versions by number', () => {
  assert.ok(isOlder('6.2.0', '7.2'));
  assert.ok(isOlder('7.1.9', '7.2'));
  assert.ok(!isOlder('7.2', '7.2'));
  assert.ok(!isOlder('10.0.2', '7.2'));
});
