/**
 * The current kubeconfig of a node. The file is replaced to renew its certificate: by the node itself on a cluster, by
 * the server for its own nodes, or by an administrator with `selfsame join`. No restart is needed.
 */
import { X509Certificate } from 'node:crypto';
import { delay } from '#client/abort.ts';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import type { PluginHost } from '#client/credentials/plugin-process.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

const RELOAD_MS = 60_000;

interface NodeAccessOptions {
  /** Absolute path. */
  readonly file: string;
  /** Runs exec plugins of the kubeconfig. */
  readonly plugins?: PluginHost | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export class NodeAccess {
  readonly #options: NodeAccessOptions;
  readonly #listeners = new Set<(renewed: ClusterAccess) => void>();
  #now: ClusterAccess;

  /** Throws KubeconfigError if the file cannot be used or its certificate has expired. */
  constructor(options: NodeAccessOptions) {
    this.#options = options;
    this.#now = readKubeconfigFile(options.file, options.plugins);
    const end = expiryOf(this.#now);
    if (end !== undefined && end.getTime() <= options.clock.now()) {
      const again = 'run selfsame join --as node again, or start the server that renews it';
      throw new KubeconfigError(
        `Cannot use ${options.file}: its certificate expired on ${end.toISOString()}; ${again}`,
      );
    }
  }

  now(): ClusterAccess {
    return this.#now;
  }

  onRenewed(listener: (renewed: ClusterAccess) => void): void {
    this.#listeners.add(listener);
  }

  /** Reads the file again. An unusable file changes nothing and is logged. */
  reload(): void {
    const { file, plugins, log } = this.#options;
    try {
      const found = readKubeconfigFile(file, plugins);
      const { clientCertificate, certificateAuthority, server } = this.#now;
      if (found.clientCertificate === clientCertificate && found.certificateAuthority === certificateAuthority) return;
      if (found.server !== server)
        throw new Error(`it is for another API server, ${found.server}; restart the node to use it`);
      this.#now = found;
      log.info({ file, until: expiryOf(found)?.toISOString() }, 'Using a new certificate for the API server');
      for (const listener of this.#listeners) listener(found);
    } catch (err) {
      log.warn({ err, file }, 'Cannot use the changed kubeconfig; using the previous one');
    }
  }

  /** Reloads the file periodically until the signal aborts. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    for (;;) {
      await delay(this.#options.clock, RELOAD_MS, { signal });
      if (signal.aborted) return;
      this.reload();
    }
  }
}

function expiryOf({ clientCertificate }: ClusterAccess): Date | undefined {
  return clientCertificate === undefined ? undefined : new X509Certificate(clientCertificate).validToDate;
}
