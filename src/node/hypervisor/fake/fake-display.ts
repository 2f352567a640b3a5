/**
 * The display of a simulated guest: it sends an RFB greeting and nothing more, and its screenshot is one black pixel.
 */
import { Duplex } from 'node:stream';
import { type DomainDefinition, hasDisplay } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

/** A PNG of one pixel. */
const SCREEN = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgABUcdcNAAAAABJRU5ErkJggg==',
  'base64',
);

export class FakeDisplay {
  readonly viewers = new Set<Duplex>();
  readonly #definition: () => DomainDefinition;

  constructor(definition: () => DomainDefinition) {
    this.#definition = definition;
  }

  open(): Duplex {
    this.#checkHasDisplay('open the display of');
    const viewer: Duplex = new Duplex({
      read: () => undefined,
      write: (_chunk, _encoding, done) => done(),
      destroy: (error, done) => {
        this.viewers.delete(viewer);
        done(error);
      },
    });
    this.viewers.add(viewer);
    viewer.push('RFB 003.008\n');
    return viewer;
  }

  screenshot(): Buffer {
    this.#checkHasDisplay('take a screenshot of');
    return SCREEN;
  }

  #checkHasDisplay(verb: string): void {
    const definition = this.#definition();
    if (!hasDisplay(definition))
      throw new HypervisorError(`Cannot ${verb} domain "${definition.name}": the guest has no display`);
  }
}
