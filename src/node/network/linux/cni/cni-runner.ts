/**
 * Runs chains of CNI plugins and keeps their results. Before ADD, the configuration is written to a file of the interface;
 * after it, the result. So DEL works after a kill -9 at any point, with the configuration and the result of its ADD.
 *
 *   <cache>/<container id>.<interface>.json     configuration, attachment and, after ADD, the result
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '#kube/meta.ts';
import { replaceFileAtomically } from '#lib/files/replace-file-atomically.ts';
import {
  canCheck,
  CniError,
  parseObject,
  pluginInput,
  type CniConfigList,
} from '#node/network/linux/cni/cni-config.ts';
import { runCniPlugin, type CniCommand } from '#node/network/linux/cni/cni-plugin.ts';
import { parseCniResult, type CniResult } from '#node/network/linux/cni/cni-result.ts';

interface CniAttachment {
  readonly containerId: string;
  /** The path of the network namespace. */
  readonly namespace: string;
  readonly interface: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Values for plugins that have the capability, such as `mac` and `ips`. */
  readonly capabilities: Readonly<Record<string, unknown>>;
}

interface CacheEntry {
  readonly config: CniConfigList;
  readonly attachment: CniAttachment;
  readonly result?: Record<string, unknown>;
}

interface CniRunnerOptions {
  readonly pluginDirs: readonly string[];
  /** Words that come before the path of a plugin. */
  readonly launcher?: readonly string[];
  /** Exists. */
  readonly cacheDir: string;
  /** The limit of each plugin. */
  readonly timeoutMs?: number;
}

interface CniRunOptions {
  readonly signal?: AbortSignal | undefined;
}

const TIMEOUT_MS = 30_000;
/** A part of a file name and of CNI_ARGS, in which semicolons and equals signs have a meaning. */
const WORD = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

export class CniRunner {
  readonly #options: CniRunnerOptions;

  constructor(options: CniRunnerOptions) {
    this.#options = options;
  }

  /** Runs ADD of all plugins. If one fails, those that ran are undone, and the error names the one that failed. */
  async add(config: CniConfigList, attachment: CniAttachment, { signal }: CniRunOptions = {}): Promise<CniResult> {
    const path = this.#path(attachment.containerId, attachment.interface);
    checkPod(attachment);
    await this.#write(path, { config, attachment });
    let result: Record<string, unknown> | undefined;
    let reached = 0;
    try {
      for (const [index] of config.plugins.entries()) {
        reached = index;
        result = await this.#run('ADD', { config, attachment, ...(result && { result }) }, index, signal);
      }
      const parsed = parseCniResult(result, config.plugins.at(-1)?.type ?? '');
      await this.#write(path, { config, attachment, ...(result && { result }) });
      return parsed;
    } catch (error) {
      const problems = await this.#undo({ config, attachment, ...(result && { result }) }, reached);
      if (problems.length === 0) await rm(path, { force: true });
      throw error;
    }
  }

  /** Runs CHECK of all plugins; does nothing for configurations without it, or if nothing was added. */
  async check(containerId: string, name: string, { signal }: CniRunOptions = {}): Promise<void> {
    const entry = await this.#read(this.#path(containerId, name));
    if (entry?.result === undefined || !canCheck(entry.config)) return;
    for (const [index] of entry.config.plugins.entries()) await this.#run('CHECK', entry, index, signal);
  }

  /**
   * Runs DEL of all plugins in reverse order, the others too if one fails, and then throws. Does nothing if nothing was
   * added.
   */
  async delete(containerId: string, name: string): Promise<void> {
    const path = this.#path(containerId, name);
    const entry = await this.#read(path);
    if (entry !== undefined) {
      const problems = await this.#undo(entry, entry.config.plugins.length - 1);
      if (problems[0] !== undefined) throw problems[0];
    }
    await rm(path, { force: true });
  }

  /** Returns the cached result, or undefined if no ADD has been completed. */
  async result(containerId: string, name: string): Promise<CniResult | undefined> {
    const entry = await this.#read(this.#path(containerId, name));
    return entry?.result && parseCniResult(entry.result, entry.config.plugins.at(-1)?.type ?? '');
  }

  /** Lists the interfaces of a container for which an ADD has begun. */
  async interfaces(containerId: string): Promise<string[]> {
    const names = await readdir(this.#options.cacheDir);
    const prefix = `${containerId}.`;
    return names.flatMap((name) =>
      name.startsWith(prefix) && name.endsWith('.json') ? name.slice(prefix.length, -'.json'.length) : [],
    );
  }

  /** Runs DEL of the plugins up to an index, in reverse order. Returns what failed. */
  async #undo(entry: CacheEntry, last: number): Promise<Error[]> {
    const problems: Error[] = [];
    for (let index = last; index >= 0; index--) {
      await this.#run('DEL', entry, index, undefined).catch((error: Error) => {
        // A plugin that is not installed has added nothing, or will never remove it: the namespace is removed anyway.
        if (!(error instanceof CniError && error.isMissing)) problems.push(error);
      });
    }
    return problems;
  }

  #run(
    command: CniCommand,
    { config, attachment, result }: CacheEntry,
    index: number,
    signal: AbortSignal | undefined,
  ): Promise<Record<string, unknown> | undefined> {
    const plugin = config.plugins[index];
    if (plugin === undefined) throw new CniError(`CNI configuration "${config.name}" has no plugin ${index}`);
    const { pluginDirs, launcher = [], timeoutMs = TIMEOUT_MS } = this.#options;
    return runCniPlugin({
      command,
      type: plugin.type,
      directories: pluginDirs,
      launcher,
      timeoutMs,
      input: pluginInput(config, plugin, { prevResult: result, capabilities: attachment.capabilities }),
      env: {
        CNI_CONTAINERID: attachment.containerId,
        CNI_NETNS: attachment.namespace,
        CNI_IFNAME: attachment.interface,
        CNI_ARGS: cniArgs(attachment),
      },
      signal,
    });
  }

  #path(containerId: string, name: string): string {
    for (const word of [containerId, name]) {
      if (!WORD.test(word))
        throw new CniError(`Cannot use ${JSON.stringify(word)} as a name for CNI`, { permanent: true });
    }
    return join(this.#options.cacheDir, `${containerId}.${name}.json`);
  }

  async #write(path: string, entry: CacheEntry): Promise<void> {
    await replaceFileAtomically(path, JSON.stringify(entry));
  }

  /** Returns undefined for a file that does not exist or that is damaged: DEL could not do anything with it. */
  async #read(path: string): Promise<CacheEntry | undefined> {
    const entry = parseObject(await readFile(path, 'utf8').catch(() => ''));
    return entry !== undefined && isRecord(entry['config']) && isRecord(entry['attachment'])
      ? (entry as unknown as CacheEntry)
      : undefined;
  }
}

function checkPod({ pod }: CniAttachment): void {
  for (const word of Object.values(pod)) {
    if (!WORD.test(word))
      throw new CniError(`Cannot use ${JSON.stringify(word)} as the name of a pod`, { permanent: true });
  }
}

function cniArgs({ containerId, pod }: CniAttachment): string {
  return [
    'IgnoreUnknown=1',
    `K8S_POD_NAMESPACE=${pod.namespace}`,
    `K8S_POD_NAME=${pod.name}`,
    `K8S_POD_INFRA_CONTAINER_ID=${containerId}`,
    `K8S_POD_UID=${pod.uid}`,
  ].join(';');
}
