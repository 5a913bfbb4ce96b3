require('dd-trace6').init()
