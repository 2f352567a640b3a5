/**
 * The display of one domain: a VNC server in its QEMU, on a socket in the domain directory that only the node agent
 * hands out. Each viewer has its own connection; all see the same picture. The server is found by its socket, so the
 * next node agent finds it in the same way.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type DomainDefinition, hasDisplay } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { DISPLAY_SOCKET, type DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { takeScreenshot } from '#node/hypervisor/qemu/guest-io/screenshot.ts';

const MAX_VIEWERS = 32;
const OPEN = 'open the display of';
const SCREENSHOT = 'take a screenshot of';

interface DisplayParts {
  readonly dir: DomainDir;
  readonly definition: () => DomainDefinition;
  readonly hasEnded: () => boolean;
  readonly withQmp: <T>(verb: string, work: (qmp: QmpClient) => Promise<T>) => Promise<T>;
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
    this.#checkHasDisplay(OPEN);
    if (hasEnded() || this.#closed) throw this.#error(OPEN, 'the guest has ended');
    if (this.#viewers.size >= MAX_VIEWERS)
      throw this.#error(OPEN, `${MAX_VIEWERS} connections are open already; close one of them`);
    if (!(await dir.hasSocket(DISPLAY_SOCKET))) {
      throw this.#error(OPEN, 'the guest was started by a version without displays; restart the VM');
    }
    const socket = await dir.connect(DISPLAY_SOCKET).catch((cause: unknown) => {
      throw this.#error(OPEN, (cause as Error).message, cause);
    });
    this.#viewers.add(socket);
    socket.once('close', () => this.#viewers.delete(socket));
    if (this.#closed) socket.destroy();
    return socket;
  }

  async screenshot({ moveCursor }: { readonly moveCursor: boolean }): Promise<Buffer> {
    this.#checkHasDisplay(SCREENSHOT);
    const { withQmp, dir } = this.#parts;
    return await withQmp(SCREENSHOT, (qmp) => takeScreenshot(qmp, { run: dir.run, moveCursor }));
  }

  /** Closes all connections; the guest keeps running. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#viewers) socket.destroy();
  }

  #checkHasDisplay(verb: string): void {
    if (!hasDisplay(this.#parts.definition())) throw this.#error(verb, 'the guest has no display');
  }

  #error(verb: string, why: string, cause?: unknown): HypervisorError {
    return new HypervisorError(`Cannot ${verb} domain "${this.#parts.definition().name}": ${why}`, { cause });
  }
}
