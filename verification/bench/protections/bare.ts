import { payoutHandler } from '../payout.js'
import type { Open } from '../protection.js'

/** Express alone. */
export const bare: Open = async (work) => ({ handlers: [payoutHandler(work)] })
