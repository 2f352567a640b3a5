import { storeConformance } from './testing/conformance.ts';
import { memoryBed, sqliteBed } from './testing/test-bed.ts';

storeConformance('memory store', memoryBed);
storeConformance('sqlite store', sqliteBed);
