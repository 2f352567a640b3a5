/**
 * Runs shell commands against any cluster, as users type them: sh with `kubectl` and `virtctl` that are configured for
 * the kubeconfig and namespace. Every command has a time limit. Results contain the output of both streams.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const TIME_LIMIT_MS = 60_000;
const ROOT = join(import.meta.dirname, '../..');
const PRELUDE = [
  'exec 2>&1',
  'kubectl() { "$KUBECTL" --namespace "$NAMESPACE" "$@"; }',
  'virtctl() { "$VIRTCTL" --namespace "$NAMESPACE" "$@"; }',
].join('\n');

export interface KubectlShellOptions {
  readonly kubectl: string;
  readonly kubeconfig: string;
  readonly namespace: string;
}

export interface CommandResult {
  readonly text: string;
  readonly exit: number;
}

export class KubectlShell {
  readonly #home: string;
  readonly #options: KubectlShellOptions;

  private constructor(home: string, options: KubectlShellOptions) {
    this.#home = home;
    this.#options = options;
  }

  static async open(options: KubectlShellOptions): Promise<KubectlShell> {
    // kubectl keeps its caches in its home directory.
    return new KubectlShell(await mkdtemp(join(tmpdir(), 'selfsame-shell-')), options);
  }

  async close(): Promise<void> {
    await rm(this.#home, { recursive: true, force: true });
  }

  run(command: string, input = ''): Promise<CommandResult> {
    const { kubectl, kubeconfig, namespace } = this.#options;
    const child = spawn('/bin/sh', ['-c', `${PRELUDE}\n${command}`], {
      env: {
        PATH: process.env['PATH'],
        HOME: this.#home,
        KUBECONFIG: resolve(kubeconfig),
        KUBECTL: kubectl,
        VIRTCTL: join(ROOT, 'virtctl'),
        NAMESPACE: namespace,
        LC_ALL: 'C',
      },
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
      timeout: TIME_LIMIT_MS,
    });
    child.stdin.on('error', () => {}).end(input);
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    return new Promise((resolved, rejected) => {
      child.once('error', rejected);
      child.once('close', (code) => resolved({ text: text.trim(), exit: code ?? -1 }));
    });
  }

  /** Runs a command that must succeed, and returns its output. */
  async ok(command: string, input?: string): Promise<string> {
    const { text, exit } = await this.run(command, input);
    if (exit !== 0) throw new Error(`Cannot run "${command}": exit code ${exit}: ${text}`);
    return text;
  }
}

/** A halted VM, with a disk if a claim is given. */
export function haltedVm(name: string, labels: Readonly<Record<string, string>>, claim?: string): object {
  const disks = claim === undefined ? [] : [{ name: 'data', disk: { bus: 'virtio' } }];
  const volumes = claim === undefined ? [] : [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, ...(Object.keys(labels).length === 0 ? {} : { labels }) },
    spec: {
      runStrategy: 'Halted',
      template: { spec: { domain: { memory: { guest: '128Mi' }, devices: { disks } }, volumes } },
    },
  };
}
