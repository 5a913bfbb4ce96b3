import { idempotency } from 'once-per-key'
import { MemoryStore } from 'once-per-key/memory'

idempotency({ store: new MemoryStore(), scope: (req) => req.merchantId })
