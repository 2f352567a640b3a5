import { obj, oneOf } from '#kube/schema-dsl.ts';

export const VIDEO_TYPES = ['vga', 'virtio', 'bochs', 'cirrus'] as const;

export const video = obj({
  type: oneOf([...VIDEO_TYPES, 'none'], { description: 'Defaults to vga. none: no video device and no display.' }),
});

export type VideoType = (typeof VIDEO_TYPES)[number];
