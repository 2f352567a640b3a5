/** Builds the description of a node. */
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type { NodeDescription } from '#node/registration/node-object.ts';

export function aDescription(accelerator: Capabilities['accelerator'] = 'tcg'): NodeDescription {
  const machine = { deprecated: false, maxCpus: 288 };
  return {
    name: 'n1',
    address: '127.0.0.1',
    port: 10_250,
    host: {
      cpus: 2,
      memoryBytes: 8 * 2 ** 30,
      architecture: 'amd64',
      kernelVersion: '6.1',
      osImage: 'Debian',
      machineId: 'm',
      systemUuid: 's',
      bootId: 'b',
    },
    capabilities: {
      accelerator,
      version: 'QEMU 7.2',
      machines: [
        { name: 'pc-q35-7.2', alias: 'q35', ...machine },
        { name: 'pc-q35-6.2', ...machine },
        { name: 'pc-i440fx-7.2', alias: 'pc', ...machine },
        { name: 'microvm', ...machine },
      ],
    },
  };
}
