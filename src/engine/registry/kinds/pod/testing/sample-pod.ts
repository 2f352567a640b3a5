/** Minimal pods. */
import type { Fields } from '#engine/registry/kinds/testing/sample-kind.ts';

export type Spec = Record<string, unknown>;

export const aContainer = (fields: Spec = {}) => ({ name: 'app', image: 'nginx:1.27', ...fields });
export const aPod = (spec: Spec = {}, rest: Fields = {}): Fields => ({
  spec: { containers: [aContainer()], ...spec },
  ...rest,
});
