/**
 * The DHCP server of one namespace: a dnsmasq that outlives this process, as the guest does.
 *
 *   <directory>/<id>.conf    its configuration, by which it is recognized
 *   <directory>/<id>.pid     written by dnsmasq
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFileAtomically } from '#lib/files/replace-file-atomically.ts';
import { runNetworkProgram } from '#node/network/linux/run-network-program.ts';

export class DhcpServers {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
  }

  pidFile(id: string): string {
    return join(this.#directory, `${id}.pid`);
  }

  /** Starts a server with this configuration, instead of one that runs. Without a configuration there will be none. */
  async replace(id: string, namespace: string, config: string | undefined): Promise<void> {
    await this.stop(id);
    if (config === undefined) return this.remove(id);
    await replaceFileAtomically(this.#configFile(id), config);
    await this.#start(id, namespace);
  }

  /** Starts a server that has ended. Does nothing if the guest needs none. Reports whether it had ended. */
  async restart(id: string, namespace: string): Promise<boolean> {
    const config = await readFile(this.#configFile(id)).catch(() => undefined);
    if (config === undefined || (await this.#runningPid(id)) !== undefined) return false;
    await this.#start(id, namespace);
    return true;
  }

  async stop(id: string): Promise<void> {
    const pid = await this.#runningPid(id);
    if (pid !== undefined) process.kill(pid, 'SIGKILL');
  }

  /** Removes the files of a server that has ended. */
  async remove(id: string): Promise<void> {
    await Promise.all([this.#configFile(id), this.pidFile(id)].map((path) => rm(path, { force: true })));
  }

  /** dnsmasq continues in the background when it can answer, and reports what is wrong before. */
  async #start(id: string, namespace: string): Promise<void> {
    await runNetworkProgram('nsenter', [`--net=${namespace}`, 'dnsmasq', `--conf-file=${this.#configFile(id)}`]);
  }

  /** Returns undefined if it has ended, or if its number belongs to another process now. */
  async #runningPid(id: string): Promise<number | undefined> {
    const pid = Number((await readFile(this.pidFile(id), 'utf8').catch(() => '')).trim());
    if (!Number.isInteger(pid) || pid <= 1) return undefined;
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    return command.split('\0').includes(`--conf-file=${this.#configFile(id)}`) ? pid : undefined;
  }

  #configFile(id: string): string {
    return join(this.#directory, `${id}.conf`);
  }
}
