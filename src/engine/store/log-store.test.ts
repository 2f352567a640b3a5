import { storeConformance } from '#engine/store/testing/conformance.ts';
import { memoryBed, sqliteBed } from '#engine/store/testing/test-bed.ts';

storeConformance('memory store', memoryBed);
storeConformance('sqlite store', sqliteBed);
