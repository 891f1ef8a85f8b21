// LarderRecords
