/**
 * The DNS server of a network on a host: one dnsmasq on the gateway addresses. It forwards to the servers of the host,
 * and answers names of cluster.local from the files below `<dir>/hosts/`, which it reads again when they change.
 *
 * The first agent starts it, and it outlives all of them. Its configuration file is named by its content and is part of
 * its command line, which identifies the process: a process with another command line is not ours, or outdated. If two
 * agents start one at the same time, the second cannot bind the address, and finds the first one.
 */
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { randomSuffix } from '#lib/ids.ts';
import { formatIpAddress } from '#lib/ip-address.ts';
import type { RunOnHost } from '#node/network/linux/host/host-commands.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

const CLUSTER_DOMAIN = 'cluster.local';
const PID_FILE = 'dnsmasq.pid';
const LOCK_FILE = 'dnsmasq.lock';
const OPEN_DIR = 0o755;
const MAY_ENTER = 0o001;
const EXIT_POLLS = 200;
const EXIT_POLL_MS = 10;

interface DnsOptions {
  readonly plan: NetworkPlan;
  readonly dir: string;
  readonly run: RunOnHost;
}

export class DnsServer {
  readonly #plan: NetworkPlan;
  readonly #dir: string;
  readonly #run: RunOnHost;

  constructor({ plan, dir, run }: DnsOptions) {
    this.#plan = plan;
    this.#dir = dir;
    this.#run = run;
  }

  /** Starts the server unless it runs with the present configuration. */
  async ensure(): Promise<void> {
    const text = buildDnsConfiguration(this.#plan, this.#dir, await readDnsUser());
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
    const file = join(this.#dir, `dnsmasq-${hash}.conf`);
    const running = await this.#find();
    if (running?.file === file) return;
    for (const path of [this.#dir, hostsDirectory(this.#dir)]) {
      await mkdir(path, { recursive: true, mode: OPEN_DIR });
      await chmod(path, OPEN_DIR);
    }
    await checkReadable(this.#dir);
    const temporary = `${file}.${randomSuffix()}`;
    await writeFile(temporary, text);
    await rename(temporary, file);
    if (running !== undefined) await stop(running.pid);
    try {
      // One start at a time: it ends when the pid file is written.
      await this.#run('flock', ['--close', join(this.#dir, LOCK_FILE), 'dnsmasq', `--conf-file=${file}`]);
    } catch (error) {
      if ((await this.#find())?.file !== file) throw error;
    }
  }

  /** Stops the server and removes its files, those of names included. */
  async remove(): Promise<void> {
    const running = await this.#find();
    if (running !== undefined) await stop(running.pid);
    const names = await readdir(this.#dir).catch(() => []);
    for (const name of names.filter((n) => n.startsWith('dnsmasq'))) await rm(join(this.#dir, name), { force: true });
    await rm(hostsDirectory(this.#dir), { recursive: true, force: true });
  }

  /** Returns the process of the pid file, if it is one of ours. */
  async #find(): Promise<{ pid: number; file: string } | undefined> {
    const pid = Number(await readFile(join(this.#dir, PID_FILE), 'utf8').catch(() => ''));
    if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
    const file = (await readWords(pid)).find((word) => word.startsWith('--conf-file='))?.slice('--conf-file='.length);
    return file?.startsWith(join(this.#dir, 'dnsmasq-')) === true ? { pid, file } : undefined;
  }
}

const hostsDirectory = (dir: string) => join(dir, 'hosts');

/** Throws if the server, which is not root, could not read names. It would answer without them, and report nothing. */
async function checkReadable(dir: string): Promise<void> {
  for (let path = dir; path !== dirname(path); path = dirname(path)) {
    const { mode } = await stat(path);
    if ((mode & MAY_ENTER) !== 0) continue;
    throw new Error(
      `Cannot run the DNS server of guests in ${dir}: other users may not enter ${path}; ` +
        'expected a directory that every user may enter, such as one below /run',
    );
  }
}

/** Returns the command line of a process; empty if it has ended. */
async function readWords(pid: number): Promise<string[]> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0');
}

/** Ends a process that was checked to be ours. */
async function stop(pid: number): Promise<void> {
  for (let i = 0; i < EXIT_POLLS && (await readWords(pid)).length > 1; i++) {
    try {
      process.kill(pid, i === EXIT_POLLS / 2 ? 'SIGKILL' : 'SIGTERM');
    } catch {
      return;
    }
    await delay(EXIT_POLL_MS);
  }
}

/** Debian's package creates the user dnsmasq. */
async function readDnsUser(): Promise<string> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return /^dnsmasq:/m.test(users) ? 'dnsmasq' : 'nobody';
}

/** Builds the configuration file of dnsmasq. */
export function buildDnsConfiguration({ gateways }: NetworkPlan, dir: string, user: string): string {
  return [
    'port=53',
    'bind-interfaces',
    ...gateways.map((gateway) => `listen-address=${formatIpAddress(gateway)}`),
    `user=${user}`,
    `pid-file=${join(dir, PID_FILE)}`,
    'resolv-file=/etc/resolv.conf',
    'no-hosts',
    `hostsdir=${hostsDirectory(dir)}`,
    `local=/${CLUSTER_DOMAIN}/`,
    'cache-size=1000',
    '',
  ].join('\n');
}
