print("seamesh")
