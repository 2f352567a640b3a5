import type { Chipset } from '#api/devices/chipset.ts';
import { I440FX_LAYOUT } from '#node/definition/addresses/layout-i440fx.ts';
import { Q35_LAYOUT } from '#node/definition/addresses/layout-q35.ts';
import type { Layout } from '#node/definition/addresses/layout.ts';

export function layoutOf(chipset: Chipset): Layout {
  return chipset === 'q35' ? Q35_LAYOUT : I440FX_LAYOUT;
}
