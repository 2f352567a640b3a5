/**
 * The display of one domain: a VNC server in its QEMU, on a socket in the directory of the domain that only the agent
 * hands out. Each who looks has a connection of their own; all see the same picture. The server is found by its socket,
 * so the next agent finds it as this one does.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { hasDisplay } from '#node/definition/has-display.ts';
import { HypervisorError } from '../hypervisor.ts';
import { DISPLAY_SOCKET, type DomainDir } from './domain-dir.ts';

const MAX_VIEWERS = 32;

export interface DisplayParts {
  readonly dir: DomainDir;
  readonly definition: () => DomainDefinition;
  readonly hasEnded: () => boolean;
}

export class GuestDisplay {
  readonly #parts: DisplayParts;
  readonly #viewers = new Set<Socket>();
  #closed = false;

  constructor(parts: DisplayParts) {
    this.#parts = parts;
  }

  async open(): Promise<Duplex> {
    const { dir, definition, hasEnded } = this.#parts;
    if (!hasDisplay(definition())) throw this.#cannot('it has none');
    if (hasEnded() || this.#closed) throw this.#cannot('it has ended');
    if (this.#viewers.size >= MAX_VIEWERS) throw this.#cannot(`${MAX_VIEWERS} are open already`);
    if (!(await dir.hasSocket(DISPLAY_SOCKET))) {
      throw this.#cannot('it was started by a version without displays; restart the VM');
    }
    const socket = await dir.connect(DISPLAY_SOCKET).catch((cause: unknown) => {
      throw this.#cannot((cause as Error).message, cause);
    });
    this.#viewers.add(socket);
    socket.once('close', () => this.#viewers.delete(socket));
    if (this.#closed) socket.destroy();
    return socket;
  }

  /** Hangs up; the guest goes on. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#viewers) socket.destroy();
  }

  #cannot(why: string, cause?: unknown): HypervisorError {
    return new HypervisorError(`Cannot open the display of domain "${this.#parts.definition().name}": ${why}`, {
      cause,
    });
  }
}
