/**
 * The kubeconfig of a node as it is now. Whoever renews the certificate in it replaces the file: the node itself on a cluster,
 * the server where it is the server's own, or an administrator by `selfsame join`. Nothing has to be restarted for it.
 */
import { X509Certificate } from 'node:crypto';
import { delay } from '#client/abort.ts';
import { readKubeconfigFile } from '#client/kubeconfig-file.ts';
import { KubeconfigError, type ClusterAccess } from '#client/kubeconfig.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

const LOOK_MS = 60_000;

export interface NodeAccessOptions {
  /** Absolute. */
  readonly file: string;
  readonly clock: Clock;
  readonly log: Log;
}

export class NodeAccess {
  readonly #options: NodeAccessOptions;
  readonly #listeners = new Set<(renewed: ClusterAccess) => void>();
  #now: ClusterAccess;

  /** Throws KubeconfigError where it cannot be used, or its certificate has ended. */
  constructor(options: NodeAccessOptions) {
    this.#options = options;
    this.#now = readKubeconfigFile(options.file);
    const end = endOf(this.#now);
    if (end !== undefined && end.getTime() <= options.clock.now()) {
      const again = 'run selfsame join --as node again, or start the server that keeps it';
      throw new KubeconfigError(`Cannot use ${options.file}: its certificate ended on ${end.toISOString()}; ${again}`);
    }
  }

  now(): ClusterAccess {
    return this.#now;
  }

  onRenewed(listener: (renewed: ClusterAccess) => void): void {
    this.#listeners.add(listener);
  }

  /** Reads it again. What cannot be used changes nothing, and is told. */
  look(): void {
    const { file, log } = this.#options;
    try {
      const found = readKubeconfigFile(file);
      const { clientCertificate, certificateAuthority, server } = this.#now;
      if (found.clientCertificate === clientCertificate && found.certificateAuthority === certificateAuthority) return;
      if (found.server !== server) throw new Error(`it is for ${found.server}; to go there, start the node again`);
      this.#now = found;
      log.info({ file, until: endOf(found)?.toISOString() }, 'took up a new certificate for the API server');
      for (const listener of this.#listeners) listener(found);
    } catch (err) {
      log.warn({ err, file }, 'Cannot use the kubeconfig as it is now; going on with what it was');
    }
  }

  /** Looks until the signal aborts. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    for (;;) {
      await delay(this.#options.clock, LOOK_MS, { signal });
      if (signal.aborted) return;
      this.look();
    }
  }
}

function endOf({ clientCertificate }: ClusterAccess): Date | undefined {
  return clientCertificate === undefined ? undefined : new X509Certificate(clientCertificate).validToDate;
}
