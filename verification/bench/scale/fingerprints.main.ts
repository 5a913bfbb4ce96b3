// Fingerprints in a process of its own, on the server's core.
import { answerCalls } from '../calls.js'
import { timeFingerprints } from './fingerprints.js'

export type FingerprintCalls = { timeFingerprints: typeof timeFingerprints }

answerCalls({ timeFingerprints })
