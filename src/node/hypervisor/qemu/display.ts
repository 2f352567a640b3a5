/**
 * The display of one domain: a VNC server in its QEMU, on a socket in the domain directory that only the node agent
 * hands out. Each viewer has its own connection; all see the same picture. The server is found by its socket, so the
 * next node agent finds it in the same way.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { hasDisplay } from '#node/definition/has-display.ts';
import { HypervisorError } from '../hypervisor.ts';
import { DISPLAY_SOCKET, type DomainDir } from './domain-dir.ts';
import type { QmpClient } from './qmp.ts';
import { takeScreenshot } from './screenshot.ts';

const MAX_VIEWERS = 32;
const OPEN = 'open the display of';
const PICTURE = 'take a screenshot of';

export interface DisplayParts {
  readonly dir: DomainDir;
  readonly definition: () => DomainDefinition;
  readonly hasEnded: () => boolean;
  readonly ask: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
}

export class GuestDisplay {
  readonly #parts: DisplayParts;
  readonly #viewers = new Set<Socket>();
  #closed = false;

  constructor(parts: DisplayParts) {
    this.#parts = parts;
  }

  async open(): Promise<Duplex> {
    const { dir, hasEnded } = this.#parts;
    this.#checkThere(OPEN);
    if (hasEnded() || this.#closed) throw this.#cannot(OPEN, 'the guest has ended');
    if (this.#viewers.size >= MAX_VIEWERS)
      throw this.#cannot(OPEN, `${MAX_VIEWERS} connections are open already; close one of them`);
    if (!(await dir.hasSocket(DISPLAY_SOCKET))) {
      throw this.#cannot(OPEN, 'the guest was started by a version without displays; restart the VM');
    }
    const socket = await dir.connect(DISPLAY_SOCKET).catch((cause: unknown) => {
      throw this.#cannot(OPEN, (cause as Error).message, cause);
    });
    this.#viewers.add(socket);
    socket.once('close', () => this.#viewers.delete(socket));
    if (this.#closed) socket.destroy();
    return socket;
  }

  async picture({ moveCursor }: { readonly moveCursor: boolean }): Promise<Buffer> {
    this.#checkThere(PICTURE);
    const { ask, dir } = this.#parts;
    return await ask(PICTURE, (qmp) => takeScreenshot(qmp, { run: dir.run, moveCursor }));
  }

  /** Closes all connections; the guest keeps running. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#viewers) socket.destroy();
  }

  #checkThere(verb: string): void {
    if (!hasDisplay(this.#parts.definition())) throw this.#cannot(verb, 'the guest has no display');
  }

  #cannot(verb: string, why: string, cause?: unknown): HypervisorError {
    return new HypervisorError(`Cannot ${verb} domain "${this.#parts.definition().name}": ${why}`, { cause });
  }
}
