require('dd-trace').init()
