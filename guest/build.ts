/**
 * Builds the initramfs of the built-in guest from Debian's packages, without cpio or depmod:
 *
 *   node guest/build.ts ROOT OUT     ROOT: the directory into which `dpkg-deb -x` unpacked linux-image-*-amd64,
 *                                    busybox-static, and qemu-guest-agent and netcat-traditional with their libraries
 *                                    (without them, the guest has no agent or no UDP)
 *
 * Writes OUT/vmlinuz and OUT/initrd.gz. The latter begins with an uncompressed archive that the guest itself unpacks
 * after it has booted (extras.gz), because a kernel needs a second to unpack 10 MB under emulation. The rest follows.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { CpioArchive } from './cpio.ts';
import { loadOrder } from './kernel-modules.ts';
import { librariesFor } from './shared-libraries.ts';

/** The modules that the guest's hardware needs. Their dependencies are added. */
const MODULES = [
  ...['virtio_pci', 'virtio_net', 'virtio_blk', 'virtio_scsi', 'virtio_balloon', 'virtio-rng', 'virtio_console'],
  ...['ahci', 'sd_mod', 'sr_mod', 'isofs', 'vfat', 'nls_ascii', 'nls_iso8859-1', 'nls_utf8', 'nls_cp437'],
  ...['e1000e', 'button', 'evdev', 'efivarfs'],
];
/** Modules that only some guests load: to make a file system, or to start their watchdog. */
const LATE_MODULES = ['crc32c_generic', 'ext4', 'i6300esb'];
const AGENT = 'usr/sbin/qemu-ga';
/** Busybox has no UDP listener. */
const UDP_LISTENER = 'bin/nc.traditional';
const OS_RELEASE = `NAME="Selfsame Guest"
ID=selfsame-guest
VERSION="1"
VERSION_ID="1"
PRETTY_NAME="Selfsame Guest 1"
`;

const [root, out] = process.argv.slice(2);
if (root === undefined || out === undefined) {
  process.stderr.write('Usage: node guest/build.ts ROOT OUT\n');
  process.exit(2);
}

mkdirSync(out, { recursive: true });
const kernels = readdirSync(join(root, 'boot')).filter((name) => name.startsWith('vmlinuz-'));
if (kernels.length !== 1) throw new Error(`Cannot build the guest: ${kernels.length} kernels in ${root}; expected one`);
writeAtomically('vmlinuz', (path) => copyFileSync(join(root, 'boot', kernels[0]!), path));
writeAtomically('initrd.gz', (path) =>
  writeFileSync(path, Buffer.concat([lateArchive(root), gzipSync(initramfs(root), { level: 6 })])),
);

function initramfs(from: string): Buffer {
  const archive = new CpioArchive();
  for (const name of ['bin', 'm', 'dev', 'proc', 'sys', 'tmp', 'etc', 'mnt']) archive.directory(name);
  archive.device('dev/console', 5, 1);
  archive.device('dev/null', 1, 3);
  archive.file('bin/busybox', readFileSync(join(from, 'bin/busybox')), 0o755);
  archive.file('etc/os-release', Buffer.from(OS_RELEASE), 0o644);
  archive.file('init', readFileSync(join(import.meta.dirname, 'init')), 0o755);
  const order = loadOrder(join(from, 'lib/modules'), MODULES);
  for (const path of order) archive.file(`m/${basename(path)}`, readFileSync(path), 0o644);
  archive.file('m/order', Buffer.from(order.map((path) => basename(path, '.ko')).join('\n')), 0o644);
  return archive.end();
}

/** Returns an archive with one file, itself an archive: kernels only copy what is not compressed. */
function lateArchive(from: string): Buffer {
  const archive = new CpioArchive();
  archive.file('extras.gz', gzipSync(extras(from), { level: 9 }), 0o644);
  return archive.end();
}

function extras(from: string): Buffer {
  const archive = new CpioArchive();
  for (const name of ['usr', 'usr/sbin', 'usr/lib', 'lib64', 'late']) archive.directory(name);
  const early = new Set(loadOrder(join(from, 'lib/modules'), MODULES));
  const order = loadOrder(join(from, 'lib/modules'), LATE_MODULES).filter((path) => !early.has(path));
  for (const path of order) archive.file(`late/${basename(path)}`, readFileSync(path), 0o644);
  archive.file('late/order', Buffer.from(order.map((path) => basename(path, '.ko')).join('\n')), 0o644);
  const libraries = new Map<string, string>();
  for (const path of [AGENT, UDP_LISTENER].filter((one) => existsSync(join(from, one)))) {
    const program = readFileSync(join(from, path));
    archive.file(path, program, 0o755);
    for (const [name, file] of librariesFor(program, from)) libraries.set(name, file);
  }
  for (const [name, path] of libraries) {
    archive.file(`${name.startsWith('ld-linux') ? 'lib64' : 'usr/lib'}/${name}`, readFileSync(path), 0o755);
  }
  return archive.end();
}

/** Writes to a temporary file and renames it, so that an interrupted build leaves no incomplete file. */
function writeAtomically(name: string, write: (path: string) => void): void {
  const path = join(out!, name);
  write(`${path}.new`);
  renameSync(`${path}.new`, path);
}
