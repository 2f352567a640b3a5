/**
 * The network namespace of one guest, as a file in /run/netns. Its name begins with a hash of the directory of the node, so
 * that several nodes on one machine do not meet.
 */
import { createHash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runNetworkProgram } from '#node/network/linux/run-network-program.ts';
import { PodNetworkError } from '#node/network/pod-networks.ts';

const NAMESPACES = '/run/netns';
/** The uid of a VMI. Anything else could be a path. */
const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const KILL_POLL_MS = 5;
const KILL_POLLS = 400;

export class PodNamespaces {
  readonly #prefix: string;

  constructor(nodeDir: string) {
    this.#prefix = `selfsame-${createHash('sha256').update(resolve(nodeDir)).digest('hex').slice(0, 8)}-`;
  }

  /** Throws for an id that could be a path. */
  path(id: string): string {
    if (!ID.test(id)) {
      throw new PodNetworkError(`Cannot use ${JSON.stringify(id)} as a domain id: expected a uid`, { permanent: true });
    }
    return join(NAMESPACES, this.#prefix + id);
  }

  /** Returns the ids of all guests that have one, or the remains of one. */
  async list(): Promise<string[]> {
    const names = await readdir(NAMESPACES).catch(() => []);
    return names
      .filter((name) => name.startsWith(this.#prefix))
      .map((name) => name.slice(this.#prefix.length))
      .filter((id) => ID.test(id));
  }

  /** Reports whether it is a namespace; after a kill -9 of `ip` it may be an ordinary file. */
  async exists(id: string): Promise<boolean> {
    const [own, found] = await Promise.all([stat('/proc/self/ns/net'), stat(this.path(id)).catch(() => undefined)]);
    return found?.dev === own.dev;
  }

  async create(id: string, signal: AbortSignal | undefined): Promise<void> {
    await runNetworkProgram('ip', ['netns', 'add', this.#name(id)], { signal });
  }

  /** Runs a script of podScript in the namespace. */
  async run(id: string, script: string, signal?: AbortSignal): Promise<string> {
    return runNetworkProgram('nsenter', [`--net=${this.path(id)}`, 'sh'], { input: script, signal });
  }

  /** Kills every process in the namespace and waits for a limited time until they are gone. */
  async kill(id: string): Promise<void> {
    const { ino } = await stat(this.path(id));
    const output = await runNetworkProgram('ip', ['netns', 'pids', this.#name(id)]);
    let pids = output.split('\n').map(Number).filter((pid) => pid > 0); // prettier-ignore
    for (let polls = 0; polls < KILL_POLLS; polls++) {
      // A process that has ended has no namespace, even if nobody has asked for its exit code yet.
      const inside = await Promise.all(pids.map((pid) => stat(`/proc/${pid}/ns/net`).catch(() => undefined)));
      pids = pids.filter((_, index) => inside[index]?.ino === ino);
      if (pids.length === 0) return;
      for (const pid of pids) sendSignal(pid, 'SIGKILL');
      await sleep(KILL_POLL_MS);
    }
  }

  /** Removes the namespace, or what is left of it. Does nothing if there is none. */
  async delete(id: string): Promise<void> {
    if (await this.exists(id)) await runNetworkProgram('ip', ['netns', 'delete', this.#name(id)]);
    else await rm(this.path(id), { force: true });
  }

  #name(id: string): string {
    return this.#prefix + id;
  }
}

/** Does nothing if the process does not exist. */
function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
